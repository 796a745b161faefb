"""Words that mean a missing value: those that always do, and those that do in a column of numbers.

Words of many languages. What means that a person gave no answer (`prefer not to say`) is a value of a group, and here
a missing value of numbers alone.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from tasks.ingest.intake.folding import fold

_RUNS: Final = re.compile(r"-+|\?+|\.+|_+|#+|- -")
_RUNS_OF_NUMBERS: Final = re.compile(r"\*+|x+|/+|~+")

_SURE: Final = """
na | n/a | n.a. | n. a. | #n/a | #na | <na> | (na) | [na] | nan | -nan | nat | n/k | n\\a
null | (null) | <null> | [null] | {null} | #null! | \\n | (blank) | [blank] | <blank> | (empty) | <empty>
(missing)
#div/0! | #value! | #ref! | #name? | #num! | #error!
k. a. | k.a. | k. a | keine angabe | keine angaben | ohne angabe | o. a. | unbekannt | nicht bekannt
nicht angegeben | n. v. | nicht vorhanden
fehlt | fehlend
n.d. | n. d. | n/d | n.c. | non renseigné | non renseignée | non communiqué | non précisé | non disponible | inconnu
inconnue | s.o. | s. o. | manquant
s/d | s.d. | s. d. | sin datos | sin dato | no consta | n/c | ns/nc | ns / nc | no disponible | desconocido
desconocida | sin información
no informado | no especificado | no indicado
n.i. | n/i | não informado | não informada | nao informado | sem informação | sem informacao | sem dados
desconhecido | desconhecida
não disponível | não consta | não declarado | s/i | ignorado
n.p. | non pervenuto | non disponibile | non noto | non nota | non indicato | non fornito | non dichiarato
sconosciuto | sconosciuta
assente | mancante | dato mancante
onbekend | niet bekend | n.b. | n.v.t. | n. v. t. | nvt | niet opgegeven | niet ingevuld | geen opgave
geen gegevens | ontbreekt
brak danych | b.d. | b. d. | nieznany | nieznana | nieznane | nie podano | nie wiadomo | brak informacji
bilinmiyor | belirtilmemiş | belirtilmedi | belirsiz | bilgi yok | veri yok | girilmemiş | yanıt yok
mevcut değil | eksik
okänd | okänt | ej angivet | ej angiven | ej uppgivet | ej känt | uppgift saknas | uppgifter saknas | saknas
e/t | inte angivet | ukendt | ukjent | tuntematon
neznámé | ismeretlen | necunoscut
неизвестно | нет данных | не указано | не указан | не указана
ikke oplyst | uoplyst | ikke oppgitt | uoppgitt | ei tiedossa | ei ilmoitettu | ei tietoa
neuvedeno | nezjištěno | neznámo | tidak diketahui | tidak diisi | tidak ada data
不明 | 未回答 | 無回答 | 未記入 | 未入力 | 未登録 | 未記載 | 記載なし | 回答なし | データなし | 情報なし | 欠損
欠測 | 空白
不详 | 不詳 | 未知 | 未填 | 未填写 | 未填寫 | 未提供 | 缺失 | 缺失值 | 空 | 暂无 | 暫無 | 无数据 | 無資料
无资料 | 不清楚 | 未说明 | 未說明
미상 | 모름 | 알 수 없음 | 알수없음 | 무응답 | 미응답 | 미입력 | 미기재 | 미제공 | 결측 | 결측치 | 정보 없음
정보없음 | 자료 없음
"""
_OF_NUMBERS: Final = """
none | nil | tbd | tba | tbc | unknown | unk | dk | d/k | don't know | dont know | not known | refused
not applicable | not available
not provided | not reported | not recorded | not stated | not given | not disclosed | not specified
undisclosed | missing | no data | no answer
pending | exempt | test optional | no score | no hit | no file | no credit | no credit score | no record | blank
empty | withheld | declined | no history | no credit history | thin file | new to credit | not taken | did not take
waived | absent | kein score | kein eintrag | keine historie | nicht abgelegt | sin historial | sin puntaje
no presentado | sem score | sem histórico | não realizado | sans score | non passé | non sostenuto | senza punteggio
niet afgelegd | geen score | brak historii | ej skrivit | ej avlagt | ikke avlagt | 未受験 | 未受检 | 미응시
prefer not to say | prefer not to answer | information not provided | nd | nr | ns | nc | nh | ntc | ne
neant | néant | aucun | aucune | sans
keine | keiner | kein | entfällt | ausstehend | verweigert | keine auskunft | offen
ninguno | ninguna | pendiente | no aplica | rehusado | no sabe | nada
nenhum | nenhuma | pendente | não se aplica | nao se aplica | recusado | não sabe | não possui
nessuno | nessuna | in attesa | non applicabile | rifiutato | non sa
geen | nihil | in behandeling | niet van toepassing | geweigerd | weet niet
żaden | żadna | brak | nie dotyczy | oczekuje | odmowa | nie wie | nie ma | zwolniony
yok | bekliyor | beklemede | uygulanamaz | reddedildi | hiçbiri | muaf
ingen | inget | inga | avvaktar | ej tillämpligt | vill ej svara | vet ej | undantagen
なし | 無し | 無 | 該当なし | 該当無し | 非該当 | 保留 | 未定 | 回答拒否 | 対象外 | 欠席
无 | 不适用 | 不適用 | 待定 | 拒绝回答 | 拒答 | 没有 | 缺考
없음 | 해당 없음 | 해당없음 | 보류 | 미정 | 거부 | 응답 거부 | 응답거부 | 무 | 결시
"""


def _words(listing: str) -> frozenset[str]:
    return frozenset(fold(word) for line in listing.strip().splitlines() for word in line.split("|"))


SURE: Final = _words(_SURE)
"""Folded words that mean a missing value in every column."""
OF_NUMBERS: Final = _words(_OF_NUMBERS)
"""Folded words that mean a missing value in a column of numbers, dates or bands, and may be a value elsewhere."""


def is_missing(text: str, of_numbers: bool = False, further: Collection[str] = ()) -> bool:
    """Whether a cell is a word for a missing value; `further` are words of this column."""
    if text[:1].isdigit() and not further:  # no word begins with a digit
        return False
    form = _form(text)
    if not form or form in SURE or _RUNS.fullmatch(form):
        return True
    if of_numbers and (form in OF_NUMBERS or _RUNS_OF_NUMBERS.fullmatch(form)):
        return True
    return any(form == _form(word) for word in further)


_form = lru_cache(maxsize=65536)(fold)
