"""Encodings of text: proved, guessed with words to judge by, and decoded as a stream."""

import random
from pathlib import Path
from typing import get_args

import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.audit.source import Encoding, Source
from schemas.errors import DataQualityError
from tasks.ingest.sources import files
from tasks.ingest.sources.door import Described, describe
from tasks.ingest.sources.encodings import to_utf8

WORDS = {
    "cp1250": ("Přijato", "Zamítnuto", "Žádost", "Město", "Číslo účtu", "Příjmení", "Úroková míra", "Věřitel"),
    "cp1251": ("одобрено", "отказано", "заявка", "доход заемщика", "кредит", "женский", "мужской", "возраст"),
    "koi8-r": ("одобрено", "отказано", "заявка", "доход заемщика", "кредит", "женский", "мужской", "возраст"),
    "cp1253": ("εγκρίθηκε", "απορρίφθηκε", "αίτηση", "εισόδημα", "δάνειο", "γυναίκα", "άνδρας", "ηλικία"),
    "cp1254": ("onaylandı", "reddedildi", "başvuru", "gelir düzeyi", "kadın", "erkek", "yaşı", "şehir"),
    "cp932": ("承認しました", "否決", "申請中", "年収は", "ローン", "女性です", "男性です", "年齢"),
    "euc-jp": ("承認しました", "否決", "申請中", "年収は", "ローン", "女性です", "男性です", "年齢"),
    "gb18030": ("批准", "拒绝", "申请", "收入", "贷款", "女性", "男性", "年龄"),
    "big5": ("批准", "拒絕", "申請", "收入", "貸款", "女性", "男性", "年齡"),
    "euc-kr": ("승인", "거절", "신청", "소득", "대출", "여성", "남성", "나이"),
    "cp1252": ("Überweisung", "genehmigt", "abgelehnt", "zurückgezogen", "Straße", "5 € Gebühr", "Ärztin", "Größe"),
    "utf-16": ("Łódź", "genehmigt", "abgelehnt", "Přijato"),
    "utf-32": ("Łódź", "genehmigt", "abgelehnt", "Přijato"),
    "utf-8": ("Łódź", "승인", "одобрено", "Přijato"),
}


def table(words: tuple[str, ...]) -> str:
    rng = random.Random(3)
    return f"nr;{words[-1]};x\n" + "".join(f"{i};{rng.choice(words)};{i * 100}\n" for i in range(300))


def described(place: Path, content: bytes) -> Described:
    (place / "loans.csv").write_bytes(content)
    return describe(place / "loans.csv")


@pytest.mark.parametrize("encoding", WORDS)
def test_an_encoding_is_told_and_read(tmp_path: Path, encoding: str) -> None:
    words = WORDS[encoding]
    found = described(tmp_path, table(words).encode(encoding))
    assert (found.source.encoding, found.columns[1]) == (encoding, words[-1])
    cells = files.read(found.source, found.columns).table.column(1).to_pylist()
    assert set(cells) <= set(words)
    assert found.rows == len(cells) == 300
    told = [evidence for evidence in found.evidence if evidence.what == "encoding"]
    assert bool(told) != encoding.startswith("utf")
    assert all(len(evidence.shown) == 3 and not evidence.text.isspace() for evidence in told)


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "cp1253"])
def test_capitals_alone_are_told_by_their_small_letters(tmp_path: Path, encoding: str) -> None:
    plain = str.maketrans("ΆΈΉΊΌΎΏ", "ΑΕΗΙΟΥΩ")
    words = tuple(word.upper().translate(plain) for word in WORDS[encoding])
    table_of = described(tmp_path, table(words).encode(encoding))
    assert (table_of.source.encoding, table_of.columns[1]) == (encoding, words[-1])


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_marks_and_byte_orders(tmp_path: Path, codec: str) -> None:
    found = described(tmp_path, table(WORDS["utf-16"]).encode(codec))
    assert (found.columns[1], found.evidence, found.rows) == ("Přijato", (), 300)


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1252", "haïtienne août février Approuvé Refusé Citoyenneté"),
        ("cp1252", "Cancelada Aprovação Não concluída média"),
        ("cp1250", "odmówiono wniosek złożony później świadectwo"),
        ("cp1250", "zamítnuto schváleno dokončení žádost později"),
        ("cp1254", "onaylandı reddedildi eksik başvuru değil"),
    ],
)
def test_letters_of_one_language_tell_its_encoding(encoding: str, words: str, tmp_path: Path) -> None:
    rows = "".join(f"{i};{word}\n" for i, word in enumerate(words.split() * 9))
    (tmp_path / "loans.csv").write_bytes(f"number;word\n{rows}".encode(encoding))
    assert describe(tmp_path / "loans.csv").source.encoding == encoding


def test_bytes_that_read_the_same_in_all_candidates_are_no_question(tmp_path: Path) -> None:
    german = described(tmp_path, table(("genehmigt", "zurückgezogen", "Größe")).encode("latin-1"))
    assert (german.source.encoding, [evidence.certain for evidence in german.evidence]) == ("cp1252", [True])
    french = described(tmp_path, table(("à voir", "refusé", "accordé")).encode("latin-1"))
    assert [(evidence.certain, "cp1250" in evidence.options) for evidence in french.evidence] == [(False, True)]


def test_a_letter_beyond_ascii_in_the_last_line_tells(tmp_path: Path) -> None:
    lines = "nr;x;y\n" + "1;2;3\n" * 300_000
    found = described(tmp_path, lines.encode() + "1;refusé;3\n".encode("cp1252"))
    assert (found.source.encoding, found.evidence[0].shown) == ("cp1252", ("refusé",))


def test_words_that_were_decoded_wrongly_before_are_a_question(tmp_path: Path) -> None:
    wrong = "Peña".encode().decode("latin-1")
    found = described(tmp_path, f"id,name\n1,{wrong}\n2,x\n".encode())
    assert [(evidence.what, evidence.shown) for evidence in found.evidence] == [("mojibake", (wrong,))]
    assert files.read(found.source, ["name"]).table["name"].to_pylist() == [wrong, "x"]


def test_a_declared_encoding_that_is_wrong_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loans.csv").write_bytes("id,name\n1,Peña\n".encode("latin-1"))
    for encoding in ("utf-8", "euc-jp", "utf-32"):
        source = Source(kind="csv", path=str(tmp_path / "loans.csv"), encoding=encoding)
        with pytest.raises(DataQualityError):
            files.read(source, files.header(source))


@given(
    st.sampled_from(get_args(Encoding)), st.binary(max_size=40).map(lambda b: b.decode("cp1252", "ignore")), st.data()
)
@settings(max_examples=examples(300))
def test_a_stream_is_decoded_as_the_whole(encoding: str, text: str, data: st.DataObject) -> None:
    text = text.encode(encoding, "ignore").decode(encoding)
    content = text.encode(encoding)
    cuts = sorted(data.draw(st.lists(st.integers(min(4, len(content)), len(content)), max_size=5)))
    blocks = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    assert b"".join(to_utf8([block for block in blocks if block], encoding)).decode() == text
