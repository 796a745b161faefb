"""Words around numbers and in names of columns: currencies, units, scales; amounts, counts, rates and codes."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_UNITS: Final = """
USD: usd us$ u$s dollar dollars
EUR: € eur euro euros euroa eura
GBP: £ gbp stg pound pounds
CHF: chf sfr fr franken
JPY: jpy 円 yen
CNY: cny rmb 人民币 人民元
TWD: twd nt$ ntd
HKD: hkd hk$
SGD: sgd s$
CAD: cad ca$ c$ can$
AUD: aud au$ a$
NZD: nzd nz$
MXN: mxn mx$
ARS: ars ar$
CLP: clp
COP: cop
BRL: brl r$ reais
KRW: krw ₩ 원 won
INR: inr ₹ रु
PLN: pln zł zl złotych
TRY: try tl ₺ lira
SEK: sek kronor
NOK: nok
DKK: dkk kroner
CZK: czk kč
HUF: huf ft
RON: ron lei
RUB: rub ₽ руб р рублей рубля рубль
UAH: uah ₴ грн
ILS: ils nis ₪
ZAR: zar
NGN: ngn ₦
PHP: php ₱
THB: thb ฿ บาท
VND: vnd ₫ đ vnđ
KES: kes ksh
MAD: mad dh dirham
IDR: idr rp
MYR: myr rm
GHS: ghs gh₵ ₵
DOP: dop rd$
BGN: bgn лв
BDT: bdt ৳
CRC: crc ₡
LKR: lkr
TZS: tzs tsh
UGX: ugx ush
RSD: rsd din дин
KZT: kzt ₸
SAR: sar ر.س ريال ريالات
AED: aed dhs د.إ درهم
EGP: egp ج.م جنيه
PKR: pkr
PEN: pen s/
USD CAD AUD MXN NZD SGD HKD TWD CLP COP ARS: $
SEK NOK DKK ISK: kr
JPY CNY: ¥
CNY TWD HKD JPY: 元 圆 圓
INR PKR LKR NPR: rs
%: % pct percent procent prozent percentage pourcent prosent prosentti porcentaje パーセント 퍼센트
bps: bps bp basispunkte
months: months month mos mo mth mths mon monat monate monaten meses mês mes mesi mese mois maand maanden mnd
months: miesiące miesięcy miesiąc mies mc msc ay månad månader mån måneder
months: mt mte hónap hó luni lună μήνες μήνας μηνών міс місяць місяці місяця місяців tháng เดือน
months: месеца месеци mesiac mesiace mesiacov mahine महीने חודשים mjeseci mjesec mjeseca
months: мес месяц месяца месяцев měsíc měsíce měsíců měs شهر شهرا أشهر kk kuukautta bulan bln måneders
months: ヶ月 か月 カ月 ヵ月 ケ月 ヶ月間 か月間 个月 個月 개월 期
years: years year yrs yr y jahre jahr jahren años año ans an année années anni anno anos ano jaar jaren jr
years: év ani έτη έτος ετών рік роки років tuổi năm ปี שנים godina godine години rokov roky वर्ष साल
years: lat lata rok roku yıl yaş år vuotta vuosi let roky سنة سنوات tahun thn год года лет 年 年間 歳 才 岁 歲 세 년 살
days: день дня дней dní päivää hari
days: days day d tage tag tagen días día dias dia jours jour giorni giorno dagen dag dni dzień gün dagar 日 日間 天 일
count: 件 人 名 回 個 个 次 명 건 회 개 pcs stk szt
points: points point pts punkte punkten puntos pontos punti punten pkt puan poäng poeng 点 點 分 점
‰: ‰
m²: m2 qm mq
km: km
kg: kg
hours: hours hour hrs hr h std stunden horas heures ore uur godz saat timmar 時間 小时 시간
"""
"""The unit of each word; of a word that several share, the first is the usual one."""
_SCALES: Final = """
3: k tsd tys tis bin 千 천 тыс mila
4: 万 萬 만
5: lakh lakhs lac lacs l lpa 十万 십만
6: m mn mln mio mm mill million millions millionen millones milhões milhoes milioni milion
6: milyon juta jt triệu
3: ribu rb
6: miljoen miljoner milj 百万 百萬 백만 млн
7: crore crores cr 千万 千萬 천만
8: 億 亿 억
9: b bn bln mrd mld mia billion billions milliarden milliards miliardi miliard milyar miljard miljarder млрд
"""
"""The power of ten of each word."""
_GLUED: Final = {
    "t€": ("EUR", 3),
    "teur": ("EUR", 3),
    "tsek": ("SEK", 3),
    "tchf": ("CHF", 3),
    "tkr": ("SEK", 3),
    "mkr": ("SEK", 6),
}
_PER: Final = re.compile(
    r"\s*(?:/|\bp/|\b(?:per|pro|par|al|por|på)\s|\bp\.?\s?(?=[am]\b))\s*[^\W\d]+\.?$|\s*\ba\.\s?[adm]\.?$"
    r"|\s*\b(?:pcm|pa|mtl|monatlich|jährlich|mensuel|mensuels|mensuales|mensais|mensili|monthly|annually|yearly)\.?$"
    r"|\s*\b(?:gross|net|brutto|netto|bruto|neto|brut|nets?|lordo|lordi|netti|líquido|brüt)\.?$"
)
"""`/month`, `per year`, `p.a.`, `gross`: of what time and before what tax an amount is, which changes no number."""

_MONEY_NAMES: Final = """
amt amount income inc bal balance salary wage wages pay payment price value worth cost costs fee fees debt debts
principal asset assets savings capital revenue turnover sales earnings rent limit lim equity deposit budget
expense expenses
einkommen betrag summe gehalt lohn preis wert kosten schulden vermögen miete umsatz guthaben
ingresos ingreso importe monto salario sueldo precio valor deuda saldo cuota capital renta
revenu revenus montant salaire prix valeur dette solde loyer patrimoine
renda receita valor salário salario montante preço dívida divida saldo parcela
reddito importo stipendio prezzo valore debito saldo rata capitale
inkomen bedrag salaris loon prijs waarde schuld saldo vermogen huur
dochód dochod kwota pensja cena wartość dług zadłużenie saldo rata majątek wynagrodzenie przychód
gelir tutar maaş miktar fiyat değer borç bakiye kira
indkomst årsindkomst beløb løn gæld lånebeløb inntekt årsinntekt beløp lånebeløp lønn gjeld pris husleie
lainasumma summa tulot vuositulot palkka velka hinta
доход сумма зарплата платеж долг цена стоимость остаток
příjem částka výše mzda plat dluh cena splátka
plafon penghasilan pendapatan gaji utang harga cicilan
inkomst belopp lön pris värde skuld saldo hyra tillgångar
jövedelem fizetés összeg hitelösszeg tartozás hitelcél érték ár venit salariu suma sumă datorie preț valoare sold
εισόδημα ποσό μισθός οφειλή αξία τιμή дохід сума борг ціна вартість доходи сумата цена дълг заплата
nhập lương tiền nợ הכנסה סכום שכר חוב plaća prihod iznos dug cijena príjem suma výška dlh aay rashi vetan
金額 収入 年収 月収 所得 借入 価格 残高 資産 負債 給与 融資額 希望額 額
金额 收入 年薪 月薪 工资 价格 余额 资产 负债 额 額度
금액 소득 수입 연봉 월급 가격 잔액 자산 부채 매출 액
"""
_INCOME_NAMES: Final = """
income inc salary wage wages earnings einkommen gehalt lohn ingresos ingreso salario sueldo revenu revenus salaire
renda salário reddito stipendio inkomen salaris loon dochód pensja wynagrodzenie gelir maaş
indkomst årsindkomst løn inntekt årsinntekt lønn inkomst lön tulot vuositulot palkka доход зарплата příjem mzda plat
penghasilan pendapatan gaji 収入 年収 月収 所得 収入 年薪 月薪 工资 소득 연봉 월급
"""
"""Of money that hardly anybody who applies has none of."""
_OF_ANOTHER: Final = frozenset(
    ("co", "coapplicant", "joint", "other", "additional", "second", "secondary", "spouse", "partner", "extra")
)
"""Whose income, or a part of it, is often 0."""
_COUNT_NAMES: Final = """
count cnt num number qty quantity n nb prior priors convictions score scr fico points age tenure term terms
duration hours
days months years weeks experience exper inquiries delinquencies dependents children accounts lines visits
tests test sat gre
population size
anzahl alter laufzeit dauer vorstrafen berufserfahrung punkte punktzahl kinder jahre monate tage erfahrung
betreibungen mahnungen verlustscheine pfändungen personen haushaltsgröße haushaltsgrösse
edad plazo antecedentes condenas número numero puntuación puntaje hijos años antigüedad meses días experiencia cantidad
nombre âge durée antécédents condamnations score points enfants ancienneté mois
idade prazo antecedentes condenações pontuação quantidade filhos anos tempo experiência
età eta durata precedenti condanne punteggio figli anni mesi esperienza
leeftijd looptijd aantal veroordelingen duur kinderen jaren maanden ervaring
wiek okres liczba wyroki karalność punkty dzieci lata miesiące staż
antal anciennitet løbetid erfaring varighed alder antall løpetid varighet ansiennitet
ikä määrä kesto kokemus pisteet lapset
возраст срок количество стаж число баллы детей
věk počet délka praxe body dětí splatnost
usia umur jangka jumlah lama pengalaman tanggungan
yaş vade süre sabıka sayısı sayı puan çocuk yıl ay deneyim
ålder löptid antal domar poäng barn år månader erfarenhet
futamidő pontszám kor hónapok évek vârstă durată perioadă punctaj scor vechime διάρκεια ηλικία βαθμοί προϋπηρεσία
строк термін рейтинг вік бали възраст срок точки tuổi hạn điểm nghiệm גיל תקופה דירוג ציון ותק
trajanje bodovi iskustvo vek skóre avadhi aayu
年齢 前科 年数 期間 回数 件数 人数 点数 スコア 歳 勤続
年龄 前科 期限 次数 人数 分数 评分 年限 月数 数量
나이 전과 연령 기간 횟수 건수 인원 점수 평점 근속 개월
"""
_RATE_NAMES: Final = """
rate ratio dti ltv cltv pct percent percentage share utilization utilisation gpa apr probability
coefficient
quote zinssatz zins zinsen satz anteil schuldenquote prozent
tasa ratio porcentaje endeudamiento
taux pourcentage endettement
taxa razão percentual porcentagem endividamento
tasso rapporto percentuale
rentevoet percentage verhouding
stopa wskaźnik procent udział oprocentowanie
oran oranı faiz yüzde
procent rente gældsprocent andel gjeldsgrad korko suhde ставка доля процент sazba podíl suku rasio persen
ränta kvot andel procent skuldkvot
率 比率 割合 利率 金利 比例 占比 비율 금리 이율
"""
_CODE_NAMES: Final = """
code cd type class kind category cat group band bracket level grade status flag ind purpose reason
klasse art typ gruppe stufe zweck cod codigo código tipo grupo rango nivel faixa nível gruppo fascia livello
groupe tranche niveau soort groep grupa kod tür grubu grupp
コード 区分 種別 年齢層 年代 収入帯 所得帯 目的 代码 类型 类别 年龄段 等级 用途 코드 유형 구분 연령대 등급 목적
"""

_OF_TIME: Final = frozenset(
    (
        *("year", "month", "day", "hour", "jahr", "monat", "tag", "año", "mes", "día", "année", "mês", "dia", "anno"),
        *("mese", "giorno", "jaar", "maand", "dag", "rok", "yil", "år", "månad"),
    )
)
"""Words that name a column of dates or parts of them, where a plural would name a time."""
_LONG_STEM, _CJK = 5, re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Affix(NamedTuple):
    """Meaning of a word before or behind a number: the units that it may mean, and a power of ten."""

    units: tuple[str, ...]
    power: int


class _Stems(NamedTuple):
    """Words of names: complete ones, those that may end a longer word, and those that may be anywhere in one."""

    words: frozenset[str]
    endings: tuple[str, ...]
    inside: tuple[str, ...]


def _table(listing: str) -> Iterator[tuple[str, str]]:
    for line in listing.strip().splitlines():
        heading, _, words = line.partition(": ")
        for word in words.split():
            yield _fold(word), heading


def _fold(word: str) -> str:
    return unicodedata.normalize("NFKC", word).replace("\u0130", "i").replace("\u0131", "i").casefold()


_UNIT_OF: Final = {word: tuple(heading.split()) for word, heading in _table(_UNITS)}
_POWER_OF: Final = {word: int(heading) for word, heading in _table(_SCALES)}
CURRENCIES: Final = frozenset(
    unit for units in _UNIT_OF.values() for unit in units if unit.isupper() and len(unit) == 3
)
KNOWN: Final = frozenset(unit for units in _UNIT_OF.values() for unit in units)
"""All units that cells are written in."""


@lru_cache(maxsize=4096)
def affix(text: str, months: bool = False) -> Affix | None:
    """Meaning of the text before or behind a number; None where a word is unknown. `m` are millions, or months."""
    units: tuple[str, ...] = ()
    power = 0
    for word in _PER.sub("", _fold(text)).replace("per cent", "%").replace("por ciento", "%").split():
        parts = _parts(word.strip(".") or word, months)
        if parts is None or (parts.power and power):
            return None
        power = power or parts.power
        if parts.units:
            units = tuple(unit for unit in units if unit in parts.units) if units else parts.units
            if not units:
                return None
    return Affix(units, power)


def unit_in_name(name: str, among: Collection[str] = KNOWN, prefer: Sequence[str] = ()) -> str | None:
    """The unit in the name of a column: `Income CHF`, `DTI %`, `Plazo (meses)`.

    Args:
        name: of the column.
        among: units that are possible.
        prefer: those that the rest of the file speaks for, the likeliest first: `kr` has several.
    """
    plain = unicodedata.normalize("NFKC", name)
    units = {
        unit
        for word in re.split(r"[\s()\[\]{}_,;:/]+", plain)
        for possible in [[unit for unit in _UNIT_OF.get(_fold(word).strip("."), ()) if unit in among]]
        for unit in [unit for unit in prefer if unit in possible][:1] or possible[:1]
        if (re.search(rf"[(\[]\W*{re.escape(word)}\W*[)\]]", plain) or _says_unit(word))
    }
    return units.pop() if len(units) == 1 else None


def names_amount(name: str) -> bool:
    """Whether a column is called after money, a count, a time or a score."""
    return _names(name, _MONEY) or _names(name, _COUNTS)


def names_income(name: str) -> bool:
    """Whether a column is called after the applicant's own income, and no ratio of it."""
    return _names(name, _INCOMES) and not names_rate(name) and _OF_ANOTHER.isdisjoint(name_words(name))


def names_rate(name: str) -> bool:
    """Whether a column is called after a rate or a ratio, such as debt to income."""
    words = name_words(name)
    return _names(name, _RATES) or ("to" in words and {"income", "value", "cost"} & set(words) != set())


def names_code(name: str) -> bool:
    """Whether a column is called after codes or types."""
    return _names(name, _CODES)


def name_words(name: str) -> list[str]:
    """The folded words of a name: parted at blanks, signs and capitals, without digits at their end."""
    spread = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])", " ", unicodedata.normalize("NFKC", name))
    plain = _fold(spread).replace("n°", "no ")  # a number that counts nothing
    return [word for token in re.split(r"[\W_]+", plain) if (word := token.rstrip("0123456789"))]


def _says_unit(word: str) -> bool:
    """Whether a word of a name is a unit without brackets around it: short words are more often something else."""
    form = _fold(word)
    if form in _OF_TIME or (len(form) == 1 and _CJK.search(form)):
        return False
    iso = form in ("yrs", "mos", "mth", "pct") or (form.upper() in CURRENCIES and form not in ("try", "pen"))
    return iso or len(form) > 3 or not (form.isascii() and form.isalpha()) or (word.isupper() and len(word) > 1)


def _parts(word: str, months: bool) -> Affix | None:
    """Unit and scale of one word, also where they are written together: `万円`, `k€`."""
    if months and word == "m":
        return Affix(("months",), 0)
    if word in _GLUED:
        unit, power = _GLUED[word]
        return Affix((unit,), power)
    if word in _UNIT_OF:
        return Affix(_UNIT_OF[word], 0)
    if word in _POWER_OF:
        return Affix((), _POWER_OF[word])
    for cut in range(len(word) - 1, 0, -1):
        for scale, unit in ((word[:cut], word[cut:]), (word[cut:], word[:cut])):
            word = unit.strip(".")
            if (
                scale.strip(".") in _POWER_OF
                and word in _UNIT_OF
                and (not word.isascii() or len(word) > 2 or "$" in word)
            ):
                return Affix(_UNIT_OF[word], _POWER_OF[scale.strip(".")])
    return None


def _names(name: str, stems: _Stems) -> bool:
    """Whether a word of the name is one of these, or holds a long one: languages put words together."""
    words, short, long = stems
    return any(word in words or word.endswith(short) or any(stem in word for stem in long) for word in name_words(name))


_MONEY, _INCOMES, _COUNTS, _RATES, _CODES = (
    _Stems(
        frozenset(words),
        tuple(word for word in words if len(word) == _LONG_STEM and word != "count"),
        tuple(word for word in words if len(word) > _LONG_STEM or _CJK.search(word)),
    )
    for words in (
        _fold(names).split() for names in (_MONEY_NAMES, _INCOME_NAMES, _COUNT_NAMES, _RATE_NAMES, _CODE_NAMES)
    )
)


def _alternatives(words: Collection[str]) -> str:
    """A pattern of words, the longest first; words of Latin letters end where no letter follows."""
    ordered = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(word) + ("" if _CJK.search(word) else r"(?![^\W\d_])") for word in ordered)


MEASURED: Final = re.compile(
    rf"(?:(?:{_alternatives([word for word, units in _UNIT_OF.items() if units[0] in CURRENCIES])})\s?)?"
    r"(?P<number>\d[\d.,']*(?:\s\d{3}(?!\d))*)(?<![.,'])"
    rf"(?:\s?(?P<scale>{_alternatives(_POWER_OF)}))?"
    rf"(?:\s?(?:{_alternatives([word for word in _UNIT_OF if len(word) > 1 or not word.isascii() or word in '%$'])}))?"
)
"""A number within a folded text, with its scale and unit."""


_NO_ANSWER: Final = "欠席|缺考|결시"
SINCE_2: Final = tuple(
    re.compile(rf"(?<![^\W\d_])(?:{words})(?![^\W\d_])")
    for words in (
        r"bps?|basispunkte|ر\.س|ريالات|ريال|د\.إ|درهم|ج\.م|جنيه|měs|mon|شهرا|شهر|أشهر|سنوات|سنة|kes|ksh|mad|dh|dirham|vnđ|juta|jt"
        r"|triệu|ribu|rb|‰|m2|qm|mq|km|kg|hó|μηνών|міс|місяць|місяці|місяця|місяців|tháng|เดือน|месеца|месеци|mesiac|mesiace"
        r"|mesiacov|mahine|महीने|חודשים|mjeseci|mjesec|mjeseca|ετών|рік|роки|років|tuổi|năm|ปี|שנים|godina|godine|години"
        rf"|rokov|roky|वर्ष|साल|{_NO_ANSWER}"
        r"|rm|ghs|gh₵|₵|rd\$|bgn|лв|bdt|৳|crc|₡|lkr|tzs|tsh|ugx|ush|rsd|din|дин|kzt|₸",
        rf"peb|pebruari|agu|agt|nop|nopember|des|{_NO_ANSWER}",
    )
)
"""Words that rules of version 1 do not know, in folded cells: of numbers, and of dates."""


def power_of(scale: str) -> int:
    """The power of ten of a word for a scale."""
    return _POWER_OF[scale]
