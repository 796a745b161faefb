"""Words of column names: places in many languages, and the branches and officers of an application.

One vocabulary for drafted specs and for the denial ladder, read by words: ``property_zip_code`` holds the word zip.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

PLACES: Final = {
    "en": "zip | zipcode | postcode | postal | pincode | pin code | city | town | village | county | borough | precinct"
    " | municipality | tract | msa | msamd | fips | geoid | state | region | province | neighborhood | neighbourhood"
    " | ward | district | latitude | longitude | lat | lon | lng | address | street | area | country code",
    "de": "plz | postleitzahl | ort | wohnort | stadt | bundesland | gemeinde | landkreis | kreis | straße | adresse"
    " | anschrift | kanton | bezirk",
    "fr": "code postal | commune | ville | département | région administrative | adresse | =rue | code insee"
    " | pays de résidence | =cp",
    "es": "código postal | =cp | ciudad | provincia | municipio | dirección | calle | localidad | comunidad autónoma"
    " | departamento | barrio | =colonia | comuna | distrito | domicilio",
    "pt": "cep | código postal | cidade | município | bairro | endereço | =rua | =uf | distrito | concelho | freguesia"
    " | morada | naturalidade | localidade",
    "it": "=cap | comune | provincia | città | indirizzo | =via | regione di residenza | residenza | località"
    " | quartiere",
    "nl": "postcode | woonplaats | gemeente | plaats | stad | straat | adres | provincie | wijk",
    "pl": "kod pocztowy | miasto | miejscowość | województwo | gmina | powiat | ulica | adres | zamieszkania",
    "tr": "şehir | =il | ilçe | posta kodu | adres | mahalle | semt | ikamet | ikametgah",
    "sv": "postnummer | postort | ort | kommun | =län | adress | gata | stad | bostadsort",
    "ja": "住所 | 郵便番号 | 都道府県 | 市区町村 | 市町村 | 居住地 | 番地 | 県",
    "zh": "地址 | 城市 | 省份 | 邮编 | 邮政编码 | 区县 | 县 | 住址 | 居住地 | 户籍地 | 省 | 市",
    "ko": "주소 | 우편번호 | 시도 | 시군구 | 거주지 | 지역코드 | 거주지역",
    "cs": "psč | obec | město | okres | kraj | adresa | ulice | bydliště",
    "da": "postnummer | postnr | =by | kommune | region | adresse | vejnavn | landsdel",
    "fi": "postinumero | paikkakunta | kunta | kotikunta | maakunta | osoite | kaupunki",
    "id": "kode pos | kota | kabupaten | kecamatan | provinsi | alamat | kelurahan",
    "no": "postnummer | postnr | poststed | kommune | fylke | adresse | =by",
    "ar": "المدينة | مدينة | العنوان | عنوان | الرمز البريدي | رمز بريدي | المحافظة | محافظة | المنطقة | منطقة | الحي"
    " | الشارع | شارع | البلدية | بلدية | مكان الإقامة",
    "ru": "индекс | почтовый индекс | город | регион | область | адрес | район | населенный пункт",
    "uk": "поштовий індекс | місто | область | адреса | район | населений пункт | громада | вулиця",
    "bg": "град | област | община | пощенски код | адрес | улица | населено място | район",
    "el": "πόλη | νομός | δήμος | διεύθυνση | ταχυδρομικός κώδικας | =τκ | περιφέρεια | οδός",
    "he": "עיר | כתובת | מיקוד | רחוב | יישוב | שכונה | מחוז",
    "hi": "shahar | sheher | zila | jila | rajya | gaon | =pata | शहर | नगर",
    "hr": "=grad | županija | općina | poštanski broj | adresa | ulica | mjesto | prebivalište",
    "hu": "irányítószám | város | település | megye | lakcím | =cím | utca | lakóhely | járás",
    "ro": "cod poștal | oraș | județ | localitate | comună | adresă | =strada | domiciliu",
    "sk": "psč | obec | mesto | okres | kraj | adresa | ulica | bydlisko",
    "th": "จังหวัด | อำเภอ | รหัสไปรษณีย์",
    "vi": "thành phố | địa chỉ | mã bưu chính | nơi cư trú | =tỉnh | =quận | =huyện | =phường",
}
"""A column with one of these words says where an applicant lives or the home is; after ``=`` it is the whole name."""
THROUGH: Final = ("officer", "underwriter", "broker", "branch", "store", "channel", "lender", "lei")
"""A column with one of these words says through whom an application went."""
CLUSTERS: Final = ("officer", "underwriter", "broker", "branch", "store", "lender", "lei", "tract")
"""Rows of one value of such a column hang together; the first that a file holds counts."""
DATES: Final = frozenset(("month", "date", "quarter"))
"""A column with one of these words may say when."""
_COMPOUNDING: Final = ("de", "nl", "sv", "da", "no", "fi")
"""Languages that write several words as one: a word of a name may end with one of the list."""
_SHORTEST_ENDING: Final = 5
_EAST: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_RUNS: Final = re.compile(r"[^\W\d_]+|\d+")
_CAPITALS: Final = re.compile(r"(?<=[a-zà-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])")
_LETTERS: Final = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"})


@lru_cache(maxsize=16384)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case: at blanks, marks, numbers and capitals."""
    runs = _RUNS.findall(unicodedata.normalize("NFKC", name))
    words = (word for run in runs for word in _CAPITALS.split(run))
    return tuple(word.replace("\u0130", "i").replace("\u0131", "i").casefold() for word in words)


def _plain(word: str) -> str:
    """A word as a keyboard without accents writes it."""
    decomposed = unicodedata.normalize("NFD", word.translate(_LETTERS))
    return unicodedata.normalize("NFC", "".join(ch for ch in decomposed if not "\u0300" <= ch <= "\u036f"))


def _phrases(mark: str) -> frozenset[tuple[str, ...]]:
    """The phrases with a mark before them, or without one, each with its accents and without any."""
    listed = [phrase.strip() for listing in PLACES.values() for phrase in listing.split("|")]
    words = [words_of(phrase) for phrase in listed if phrase.startswith("=") == bool(mark)]
    return frozenset((*words, *(tuple(map(_plain, phrase)) for phrase in words)))


_ANYWHERE, _WHOLE = _phrases(""), _phrases("=")
_EASTERN: Final = frozenset("".join(phrase) for phrase in _ANYWHERE if _EAST.search(phrase[0]))
_ENDINGS: Final = tuple(
    word
    for language in _COMPOUNDING
    for phrase in PLACES[language].split("|")
    for word in {*words_of(phrase), *map(_plain, words_of(phrase))}
    if len(word) >= _SHORTEST_ENDING
)
_MOST_WORDS: Final = max(map(len, _ANYWHERE))


@lru_cache(maxsize=16384)
def is_place(name: str) -> bool:
    """Whether a column is a place, by the words of its name."""
    words = words_of(name)
    spans = {words[i : i + n] for n in range(1, _MOST_WORDS + 1) for i in range(len(words) - n + 1)}
    if words in _WHOLE or spans & _ANYWHERE or any(word.endswith(_ENDINGS) for word in words):
        return True
    joined = "".join(words)
    return bool(_EAST.search(joined)) and any(phrase in joined for phrase in _EASTERN)


def is_through(name: str) -> bool:
    """Whether a column is a branch, an officer or a channel, by the words of its name."""
    return not set(THROUGH).isdisjoint(words_of(name))
