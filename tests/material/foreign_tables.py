"""Small made-up tables in many languages and sectors, as people export them, with the truth of each beside it."""

import csv
import io
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROWS = 180
YES, NO, NONE = "favourable", "unfavourable", "neither"


@dataclass(frozen=True)
class Truth:
    """What a right draft of a table finds."""

    name: str
    decision: str
    sides: Mapping[str, Mapping[str, int]]
    people: Mapping[str, Mapping[str, int]]
    reference: Mapping[str, str]
    """Column -> reference group, where a word tells it."""
    numbers: Mapping[str, float]
    """Column -> sum."""
    categories: Mapping[str, int]
    left: Sequence[str]
    year: int | None = None


@dataclass
class Maker:
    """Draws one table, column by column."""

    name: str
    decision: str
    values: Mapping[str, Sequence[str]]
    """Side -> values of the decision."""
    seed: int = 1
    delimiter: str = ","
    encoding: str = "utf-8"
    rows: int = ROWS
    columns: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    people: dict[str, Mapping[str, int]] = field(default_factory=dict)
    reference: dict[str, str] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    year: int | None = None

    def __post_init__(self) -> None:
        """Draw a score, the sides and the values of the decision."""
        self.rng = random.Random(f"{self.name} {self.seed}")
        self.score = [self.rng.gauss(0, 1) for _ in range(self.rows)]
        self.side = [
            NONE
            if self.rng.random() < 0.12 and self.values.get(NONE)
            else YES
            if s + self.rng.gauss(0.4, 1.2) > 0
            else NO
            for s in self.score
        ]
        self.cells = [self.rng.choice(self.values[side]) for side in self.side]

    def number(self, name: str, center: float, width: float, form: Callable[[float], str], digits: int = 0) -> None:
        """A number that depends a little on the score; `form` writes it."""
        drawn = [round(max(center / 20, self.rng.gauss(center, width) + s * width / 4), digits) for s in self.score]
        self.columns[name] = [form(value) for value in drawn]
        self.numbers[name] = sum(drawn)

    def group(self, name: str, shares: Mapping[str, float], usual: str = "", nobody: str = "") -> None:
        """A protected attribute; some rows of `nobody`."""
        drawn = self.rng.choices(list(shares), list(shares.values()), k=self.rows)
        cells = [nobody if nobody and self.rng.random() < 0.05 else value for value in drawn]
        self.columns[name] = cells
        self.people[name] = Counter(cell for cell in cells if cell != nobody or not nobody)
        if usual:
            self.reference[name] = usual

    def category(self, name: str, values: Sequence[str]) -> None:
        """A category that says nothing."""
        self.columns[name] = [self.rng.choice(values) for _ in range(self.rows)]
        self.categories[name] = len(values)

    def ids(self, name: str, form: str) -> None:
        """An identifier."""
        start = self.rng.randrange(1000, 90000)
        self.columns[name] = [form.format(start + 7 * i) for i in range(self.rows)]
        self.left.append(name)

    def days(self, name: str, form: Callable[[int, int], str], year: int) -> None:
        """Days of one year, written by month and day."""
        self.columns[name] = [form(self.rng.randint(1, 12), self.rng.randint(1, 28)) for _ in range(self.rows)]
        self.left.append(name)
        self.year = year

    def later(self, name: str, form: Callable[[], str], of: str = YES) -> None:
        """A column that is filled in for one side alone."""
        self.columns[name] = [form() if side == of else "" for side in self.side]
        self.left.append(name)

    def decide(self, spell: Sequence[Callable[[str], str]] = (str, str, str.upper, str.lower)) -> None:
        """The column of the decision, in several spellings."""
        self.columns[self.decision] = [self.rng.choice(spell)(cell) for cell in self.cells]

    def write(self, folder: Path) -> tuple[Path, Truth]:
        """The table as a file, and its truth."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=self.delimiter, lineterminator="\r\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*self.columns.values(), strict=True))
        path = folder / f"{self.name}.csv"
        path.write_bytes(buffer.getvalue().encode(self.encoding))
        sides = {
            side: Counter(c for c, s in zip(self.cells, self.side, strict=True) if s == side) for side in self.values
        }
        return path, Truth(
            self.name, self.decision, sides, self.people, self.reference, self.numbers, self.categories, self.left,
            self.year,
        )  # fmt: skip


def comma(digits: int = 2, before: str = "", behind: str = "", group: str = ".") -> Callable[[float], str]:
    """Numbers with a comma before decimals."""
    return lambda v: before + f"{v:,.{digits}f}".replace(",", "_").replace(".", ",").replace("_", group) + behind


def dot(digits: int = 0, before: str = "", behind: str = "") -> Callable[[float], str]:
    """Numbers with a full stop before decimals, and commas between thousands."""
    return lambda v: f"{before}{v:,.{digits}f}{behind}"


def lakh(v: float) -> str:
    """Digits in twos, as in India."""
    text = f"{v:.0f}"
    head, tail = text[:-3], text[-3:]
    parts = []
    while head:
        parts.insert(0, head[-2:])
        head = head[:-2]
    return "₹" + ",".join([*parts, tail])


def portuguese() -> Maker:
    """A lender in Brazil."""
    m = Maker("pt", "Situação da proposta", {YES: ["Aprovada"], NO: ["Reprovada"], NONE: ["Em análise", "Desistência do cliente"]}, delimiter=";")  # fmt: skip  # noqa: E501
    m.ids("Nº da proposta", "{:08d}")
    m.days("Data da proposta", lambda month, day: f"{day:02d}/{month:02d}/2022", 2022)
    m.group("Raça/Cor", {"Branca": 0.5, "Parda": 0.35, "Preta": 0.15}, "Branca", "Não informado")
    m.group("Sexo", {"Masculino": 0.5, "Feminino": 0.5}, "Masculino")
    m.number("Renda mensal", 5400, 1800, comma(2, "R$ "), 2)
    m.number("Valor solicitado", 85000, 30000, comma(2, "R$ "), 2)
    m.number("Comprometimento de renda", 34, 8, comma(1, "", "%"), 1)
    m.number("Prazo (meses)", 60, 20, lambda v: f"{v:.0f}")
    m.category("Canal", ["Agência", "Internet", "Parceiro"])
    m.decide()
    m.later("Taxa de juros", lambda: comma(2, "", "%")(m.rng.uniform(9, 24)))
    return m


def italian() -> Maker:
    """An employer in Italy."""
    m = Maker("it", "Esito selezione", {YES: ["Assunto"], NO: ["Non idoneo", "Scartato"], NONE: ["Rinuncia del candidato"]}, delimiter=";")  # fmt: skip  # noqa: E501
    m.ids("Codice candidato", "C{:06d}")
    m.group("Genere", {"Uomo": 0.5, "Donna": 0.5}, "Uomo")
    m.group("Cittadinanza", {"italiana": 0.7, "rumena": 0.2, "albanese": 0.1})
    m.number("Anni di esperienza", 9, 4, lambda v: f"{v:.0f}")
    m.number("Punteggio test", 62, 12, comma(1), 1)
    m.category("Titolo di studio", ["Diploma", "Laurea", "Master", "Nessuno"])
    m.decide()
    m.later("RAL offerta", lambda: comma(0, "€ ")(m.rng.randint(24, 60) * 1000))
    return m


def dutch() -> Maker:
    """A university in the Netherlands."""
    m = Maker("nl", "Besluit", {YES: ["Toegelaten", "Voorwaardelijk toegelaten"], NO: ["Afgewezen"], NONE: ["Wachtlijst", "Ingetrokken"]}, delimiter=";")  # fmt: skip  # noqa: E501
    m.ids("Aanvraagnummer", "{:06d}")
    m.group("Geslacht", {"m": 0.5, "v": 0.5}, "m", "onbekend")
    m.group("Geboorteland", {"Nederland": 0.7, "Turkije": 0.15, "Marokko": 0.15})
    m.number("Gemiddeld cijfer", 7, 0.8, comma(1), 1)
    m.number("Toelatingstoets", 62, 12, comma(2), 2)
    m.category("Opleiding", ["Rechten", "Geneeskunde", "Economie"])
    m.category("Studiejaar", ["2022-2023"])
    m.categories.pop("Studiejaar")
    m.left.append("Studiejaar")
    m.decide()
    return m


def polish() -> Maker:
    """A bank in Poland, in cp1250."""
    m = Maker("pl", "Decyzja kredytowa", {YES: ["przyznano"], NO: ["odmowa"], NONE: ["rezygnacja klienta", "wniosek niekompletny"]}, delimiter=";", encoding="cp1250")  # fmt: skip  # noqa: E501
    m.ids("Nr wniosku", "W/{:06d}/23")
    m.days("Data wniosku", lambda month, day: f"{day:02d}.{month:02d}.2023", 2023)
    m.group("Płeć", {"M": 0.5, "K": 0.5}, "M")
    m.group("Obywatelstwo", {"polskie": 0.7, "ukraińskie": 0.2, "białoruskie": 0.1}, "", "brak danych")
    m.number("Dochód netto", 7200, 1900, comma(2, "", " zł", " "), 2)
    m.number("Kwota kredytu", 95000, 30000, comma(0, "", " zł", "\u00a0"))
    m.number("Okres", 60, 20, lambda v: f"{v:.0f} mies.")
    m.decide()
    m.later("Powód odmowy", lambda: m.rng.choice(["DTI", "BIK", "dochód"]), NO)
    return m


def turkish() -> Maker:
    """A bank in Turkey."""
    m = Maker("tr", "Sonuç", {YES: ["Onaylandı"], NO: ["Reddedildi"], NONE: ["İptal edildi", "Eksik evrak"]}, delimiter=";")  # fmt: skip  # noqa: E501
    m.ids("Başvuru No", "{:07d}")
    m.group("Cinsiyet", {"Erkek": 0.5, "Kadın": 0.5}, "Erkek")
    m.group("Medeni Durum", {"Evli": 0.5, "Bekar": 0.4, "Dul": 0.1}, "", "belirtilmemiş")
    m.number("Aylık Gelir", 45000, 12000, comma(2, "", " TL"), 2)
    m.number("Kredi Tutarı", 250000, 90000, comma(0, "", " TL"))
    m.number("Kredi Notu", 1300, 200, lambda v: f"{v:.0f}")
    m.category("Konut", ["Kira", "Ev sahibi", "Aile"])
    m.decide((str, str, lambda v: v.replace("i", "İ").replace("ı", "I").upper()))
    m.later("Faiz Oranı", lambda: comma(2, "%")(m.rng.uniform(2, 5)))
    return m


def swedish() -> Maker:
    """A court in Sweden."""
    m = Maker("sv", "Beslut", {YES: ["Frigiven", "Frigiven med villkor"], NO: ["Häktad"], NONE: ["Nedlagd", "Överförd"]}, delimiter="\t")  # fmt: skip  # noqa: E501
    m.ids("Målnummer", "B {:05d}-23")
    m.group("Kön", {"Man": 0.6, "Kvinna": 0.4}, "Man")
    m.group("Födelseland", {"Sverige": 0.6, "Syrien": 0.25, "Finland": 0.15}, "", "okänt")
    m.number("Antal tidigare domar", 7, 3, lambda v: f"{v:.0f}")
    m.category("Brottstyp", ["Stöld", "Misshandel", "Narkotika"])
    m.decide()
    m.later("Dagar i häkte", lambda: str(m.rng.randint(3, 90)), NO)
    return m


def japanese() -> Maker:
    """A lender in Japan, in cp932."""
    m = Maker("ja", "審査結果", {YES: ["承認"], NO: ["否決"], NONE: ["本人取下げ", "書類不備"]}, encoding="cp932")
    m.ids("受付番号", "{:08d}")
    m.days("申込日", lambda month, day: f"2023年{month}月{day}日", 2023)
    m.group("性別", {"男性": 0.5, "女性": 0.5}, "男性", "未回答")
    m.group("国籍", {"日本": 0.75, "ベトナム": 0.15, "中国": 0.1})
    m.number("年収", 5400000, 1500000, lambda v: f"{v:,.0f}円")
    m.number("借入希望額", 2400000, 700000, lambda v: f"{v:,.0f} 円")
    m.number("返済比率", 28, 6, lambda v: f"{v:.1f}%", 1)
    m.number("勤続年数", 9, 3, lambda v: f"{v:.0f}年")
    m.decide((str,))
    m.later("適用金利", lambda: f"{m.rng.uniform(2, 9):.2f}%")
    return m


def chinese() -> Maker:
    """An employer in China, in gb18030."""
    m = Maker(
        "zh", "录用结果", {YES: ["录用"], NO: ["未录用", "淘汰"], NONE: ["候选人放弃", "岗位取消"]}, encoding="gb18030"
    )
    m.ids("简历编号", "R{:06d}")
    m.group("性别", {"男": 0.5, "女": 0.5}, "男")
    m.group("民族", {"汉族": 0.7, "回族": 0.2, "藏族": 0.1}, "", "未填写")
    m.number("工作年限", 9, 4, lambda v: f"{v:.0f}")
    m.number("面试成绩", 71, 10, lambda v: f"{v:.1f}", 1)
    m.category("学历", ["本科", "硕士", "大专"])
    m.decide((str,))
    m.later("入职日期", lambda: f"2023-{m.rng.randint(1, 12):02d}-{m.rng.randint(1, 28):02d}")
    return m


def korean() -> Maker:
    """A university in Korea."""
    m = Maker("ko", "전형결과", {YES: ["합격"], NO: ["불합격"], NONE: ["예비", "지원취소"]}, encoding="utf-8-sig")
    m.ids("수험번호", "{:08d}")
    m.group("성별", {"남": 0.5, "여": 0.5}, "남")
    m.group("국적", {"대한민국": 0.8, "베트남": 0.2})
    m.number("내신", 3.1, 0.9, lambda v: f"{v:.2f}", 2)
    m.number("수능점수", 310, 40, lambda v: f"{v:.0f}")
    m.category("학과", ["경영", "법학", "공학"])
    m.decide((str,))
    return m


def indian() -> Maker:
    """A lender in India."""
    m = Maker("in", "Application Status", {YES: ["Sanctioned", "Disbursed"], NO: ["Rejected"], NONE: ["Withdrawn", "Documents pending"]})  # fmt: skip  # noqa: E501
    m.ids("Loan A/c No", "{:011d}")
    m.days("Date of Application", lambda month, day: f"{day:02d}-{month:02d}-2023", 2023)
    m.group("Gender", {"Male": 0.6, "Female": 0.4}, "Male")
    m.group("Category", {"General": 0.5, "OBC": 0.3, "SC": 0.15, "ST": 0.05})
    m.group("Religion", {"Hindu": 0.75, "Muslim": 0.15, "Christian": 0.1}, "", "Not stated")
    m.number("Annual Income", 640000, 180000, lakh)
    m.number("Loan Amount", 1250000, 400000, lakh)
    m.number("CIBIL Score", 720, 50, lambda v: f"{v:.0f}")
    m.decide()
    return m


def spanish() -> Maker:
    """An employer in Spain, in letters M and H."""
    m = Maker("es", "Resultado", {YES: ["Contratado", "Oferta realizada"], NO: ["Descartado"], NONE: ["Renuncia", "Plaza anulada"]}, delimiter=";", encoding="cp1252")  # fmt: skip  # noqa: E501
    m.ids("Nº solicitud", "S-{:05d}")
    m.group("Sexo", {"H": 0.5, "M": 0.5}, "H")
    m.group("Nacionalidad", {"española": 0.7, "marroquí": 0.2, "peruana": 0.1})
    m.number("Años de experiencia", 9, 4, lambda v: f"{v:.0f} años")
    m.number("Nota de la prueba", 62, 12, comma(1), 1)
    m.category("Estudios", ["Grado", "Máster", "FP"])
    m.decide()
    m.later("Fecha de incorporación", lambda: f"{m.rng.randint(1, 28):02d}/{m.rng.randint(1, 12):02d}/2023")
    return m


def german() -> Maker:
    """A university in Germany."""
    m = Maker("de", "Bescheid", {YES: ["Zulassung", "bedingte Zusage"], NO: ["Ablehnung"], NONE: ["Nachrückliste", "zurückgezogen"]}, delimiter=";")  # fmt: skip  # noqa: E501
    m.ids("Bewerbungsnummer", "{:07d}")
    m.group("Geschlecht", {"männlich": 0.48, "weiblich": 0.48, "divers": 0.04}, "männlich", "keine Angabe")
    m.group("Staatsangehörigkeit", {"deutsch": 0.7, "türkisch": 0.2, "syrisch": 0.1})
    m.number("Abiturnote", 2.3, 0.5, comma(1), 1)
    m.number("Testpunkte", 62, 12, comma(2), 2)
    m.category("Studiengang", ["Medizin", "Jura", "Physik"])
    m.decide()
    return m


def french() -> Maker:
    """A court in France."""
    m = Maker("fr", "Décision du juge", {YES: ["Remis en liberté", "Contrôle judiciaire"], NO: ["Détention provisoire"], NONE: ["Renvoyé"]}, delimiter=";")  # fmt: skip  # noqa: E501
    m.ids("N° dossier", "23/{:05d}")
    m.group("Sexe", {"Homme": 0.7, "Femme": 0.3}, "Homme")
    m.group("Nationalité", {"française": 0.7, "algérienne": 0.2, "roumaine": 0.1}, "", "Non renseigné")
    m.number("Condamnations antérieures", 7, 3, lambda v: f"{v:.0f}")
    m.category("Infraction", ["Vol", "Violences", "Stupéfiants"])
    m.decide()
    m.later("Jours de détention", lambda: str(m.rng.randint(3, 90)), NO)
    return m


def codes() -> Maker:
    """A lender with letters for decisions, dates of birth, and spaces between words."""
    m = Maker("letters", "DECN_CD", {YES: ["A"], NO: ["D"], NONE: ["W", "I"]}, delimiter="|")
    m.ids("APPL_NBR", "{:09d}")
    m.group(
        "ETHNICITY", {"Not Hispanic or Latino": 0.7, "Hispanic or Latino": 0.3}, "Not Hispanic or Latino", "Unknown"
    )
    m.group("GENDER_CD", {"M": 0.5, "F": 0.5}, "M", "U")
    m.number("GROSS_INC", 64000, 18000, dot(2, "$"), 2)
    m.number("LOAN_AMT", 210000, 60000, dot(0, "$"))
    m.number("FICO_SCR", 700, 50, lambda v: f"{v:.0f}")
    m.category("PROD", ["HELOC", "FIXED30", "ARM"])
    m.decide((str,))
    return m


MAKERS = (
    *(portuguese, italian, dutch, polish, turkish, swedish, japanese, chinese, korean, indian, spanish, german),
    *(french, codes),
)
