"""The words of 31 languages: none contradicts another, and each list knows what it has to and not what looks alike."""

import pytest

from flows.cli.draft import vocabulary
from flows.cli.draft.vocabulary import LANGUAGES, meaning, parts, phrases


def test_every_language_has_words_of_every_kind() -> None:
    kinds = {(p.language, p.kind, p.means) for p in phrases()}
    for language in LANGUAGES:
        for side in ("favourable", "unfavourable", "neither"):
            assert (language, "decision", side) in kinds
        for named in ("decision", "after", "id", "weight", "date", "year", "term"):
            assert (language, "name", named) in kinds
        for attribute in ("race", "ethnicity", "sex", "age", "origin", "religion", "disability", "marital status"):
            assert (language, "protected", attribute) in kinds
        assert (language, "nobody", "nobody") in kinds
        assert (language, "sex", "male") in kinds


def test_no_phrase_of_a_decision_contradicts_another_in_any_language() -> None:
    wrong = []
    for phrase in phrases():
        if phrase.kind == "decision":
            found = meaning(phrase.text.strip("*="))
            if found is None or found.side != phrase.means:
                wrong.append((phrase.language, phrase.text, phrase.means, found))
    assert wrong == []


@pytest.mark.parametrize(
    ("value", "side"),
    [
        ("Application denied by financial institution", "unfavourable"),
        ("Preapproval request denied by financial institution", "neither"),
        ("Loan purchased by institution", "neither"),
        ("Approved, but not accepted", "favourable"),
        ("not admitted", "unfavourable"),
        ("Nicht bewilligt", "unfavourable"),
        ("nie przyznano kredytu", "unfavourable"),
        ("uygun değil", "unfavourable"),
        ("İŞE ALINMADI", "unfavourable"),
        ("非承認", "unfavourable"),
        ("审批拒绝", "unfavourable"),
        ("승인 거절", "unfavourable"),
        ("Rejected after interview", "unfavourable"),
        ("Interviewed - rejected", "unfavourable"),
        ("Closed-Approved", "favourable"),
        ("offer declined by candidate", "favourable"),
        ("No longer under consideration", "unfavourable"),
        ("desistida por el cliente", "neither"),
        ("no_decision", "neither"),
        ("CTC", "favourable"),
        ("CNTR OFFER", "neither"),
        ("DCLND", "unfavourable"),
        ("Apprvd Not Accptd", "favourable"),
        ("Kreditantrag pendent", "neither"),
        ("CLSD-FNDD", "favourable"),
        ("zurückgez.", "neither"),
        ("Abgel.", "unfavourable"),
        ("Einstellung wg. fehlender Mitwirkung", "neither"),
        ("unable to offer", "unfavourable"),
        ("Concesión", "favourable"),
        ("Non attribué", "unfavourable"),
        ("Trukket tilbage", "neither"),
        ("Ikke bevilget", "unfavourable"),
        ("Innvilget", "favourable"),
        ("Ei myönnetty", "unfavourable"),
        ("не одобрено", "unfavourable"),
        ("На рассмотрении", "neither"),
        ("Zamítnuto", "unfavourable"),
        ("不予录用", "unfavourable"),
        ("承認されず", "unfavourable"),
        ("불구속", "favourable"),
        ("uygun görülmedi", "unfavourable"),
        ("Disetujui bersyarat", "favourable"),
        ("awaiting approval", "neither"),
        ("onay bekliyor", "neither"),
        ("nog niet goedgekeurd", "neither"),
        ("待核准", "neither"),
        ("Ожидает подписи", "neither"),
        ("kabul görmedi", "unfavourable"),
        ("承認待ち", "neither"),
        ("Abgelehnt (Unterlagen fehlen)", "unfavourable"),
        ("eksik evrak nedeniyle reddedildi", "unfavourable"),
        ("afgewezen door klant", "favourable"),
        ("geweigerd", "unfavourable"),
        ("Neschvalujeme", "unfavourable"),
        ("Pratiche stornate", "neither"),
        ("Autorizadas", "favourable"),
        ("Recusada - score", "unfavourable"),
        ("غير مؤهل", "unfavourable"),
        ("موافق عليه", "favourable"),
        ("hiánypótlás alatt", "neither"),
        ("nem jóváhagyva", "unfavourable"),
        ("Chờ phê duyệt", "neither"),
        ("Khách hàng hủy", "neither"),
        ("ΑΠΟΡΡΙΦΘΗΚΕ", "unfavourable"),
        ("Неприет", "unfavourable"),
        ("Не схвалено", "unfavourable"),
        ("לא אושר", "unfavourable"),
        ("स्वीकृत", "favourable"),
        ("ไม่อนุมัติ", "unfavourable"),
        ("Документи не надано", "neither"),
        ("Ανάκληση από τον πελάτη", "neither"),
        ("Blue", None),
        ("A93", None),
    ],
)
def test_the_side_of_a_value_is_that_of_its_longest_phrase(value: str, side: str | None) -> None:
    found = meaning(value)
    assert (found.side if found else None) == side


PROTECTED = {
    "How old are you?": "age",
    "Állampolgársága": "origin",
    "Tuổi khách hàng": "age",
    "agegte62": "age",
    "amind": "race",
    "race": "race",
    "applicant_race-1": "race",
    "race4": "race",
    "derived_ethnicity": "ethnicity",
    "GenderID": "sex",
    "País de nascimento": "origin",
    "Personal-Status": "sex",
    "agelt62": "age",
    "Age at arrest": "age",
    "MaritalStatus": "marital status",
    "foreign_worker": "origin",
    "Staatsangehörigkeit": "origin",
    "Płeć": "sex",
    "Cinsiyet": "sex",
    "性別": "sex",
    "国籍": "origin",
    "Raça/Cor": "race",
    "Caste Category": "caste",
    "Kjønn": "sex",
    "Äidinkieli": "language",
    "Гражданство": "origin",
    "Rodinný stav": "marital status",
    "Jenis Kelamin": "sex",
}


@pytest.mark.parametrize(("name", "kind"), PROTECTED.items())
def test_names_of_protected_attributes_are_known(name: str, kind: str) -> None:
    assert vocabulary.protected_kind(name) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [("RACEDSC", "race"), ("SEXCD", "sex"), ("BORRSEX", "sex"), ("GNDR_CD", "sex"), ("Staatsangehörigk.", "origin")],
)
def test_names_that_core_systems_shorten_are_known(name: str, kind: str) -> None:
    assert vocabulary.protected_kind(name) == kind


@pytest.mark.parametrize("name", ["LNTYPE", "APPDT", "Betr.", "CUSTNBR", "CRSCR", "PRIMDESC"])
def test_other_short_names_are_of_no_attribute(name: str) -> None:
    assert vocabulary.protected_kind(name) == ""


@pytest.mark.parametrize(
    ("values", "kind"),
    [(("Citizen", "Permanent Resident"), "origin"), (("مواطن", "مقيم"), "origin"), (("Foreign", "Domestic"), ""),
     (("Citizen", "Approved"), "")],
)  # fmt: skip
def test_citizens_and_foreigners_are_told_by_their_words(values: tuple[str, ...], kind: str) -> None:
    assert vocabulary.people_kind(values) == kind


def test_what_was_before_is_neither_the_decision_nor_after_it() -> None:
    assert not vocabulary.decision_rank("previous_loan_status")
    assert not vocabulary.is_named("minimum sentence", "after")
    assert vocabulary.is_named("sentence", "after")


@pytest.mark.parametrize(
    "name", ["mortgage", "Month-Duration", "package", "agency_code", "vehicle_age", "Tracenumber", "sextant"]
)
def test_names_that_look_alike_are_none(name: str) -> None:
    assert vocabulary.protected_kind(name) == ""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(
            (name, "after")
            for name in ("interest_rate", "denial_reason-1", "Days in custody", "Ablehnungsgrund", "適用金利")
        ),
        *((name, "id") for name in ("Docket", "Antrags-Nr.", "Nº expediente", "受付番号", "Loan ID")),
        *((name, "weight") for name in ("wgt_final", "fnlwgt", "factor de expansión")),
        *((name, "decision") for name in ("Kreditentscheidung", "Resolución", "審査結果", "action_taken")),
    ],
)
def test_names_of_columns_are_known(name: str, kind: str) -> None:
    assert vocabulary.is_named(name, kind)


@pytest.mark.parametrize(
    "name", ["income", "Taux d'endettement", "reason_for_loan", "loan_amount", "Prior convictions"]
)
def test_what_is_known_before_the_decision_is_not_named_after_it(name: str) -> None:
    assert not vocabulary.is_named(name, "after")


@pytest.mark.parametrize(
    "group",
    [
        "Race Not Available",
        "Unknown",
        "Joint",
        "prefer not to say",
        "?",
        "Keine Angabe",
        "未回答",
        "brak danych",
        "I do not wish to provide this information",
        "не указано",
        "ei halua kertoa",
        "I do not wish to furnish this information",
        "Unanswered",
    ],
)
def test_values_that_are_no_group_are_known(group: str) -> None:
    assert vocabulary.is_nobody(group)


@pytest.mark.parametrize("group", ["White", "Not Hispanic or Latino", "1", "Two or more", "Male", "Other", "Refugee"])
def test_groups_are_groups(group: str) -> None:
    assert not vocabulary.is_nobody(group)


@pytest.mark.parametrize(
    ("values", "pair"),
    [
        (("M", "F"), ("M", "F")),
        (("m", "w", "d"), ("m", "w")),
        (("H", "M"), ("H", "M")),
        (("m", "v"), ("m", "v")),
        (("Erkek", "Kadın"), ("Erkek", "Kadın")),
        (("男", "女"), ("男", "女")),
        (("М", "Ж"), ("М", "Ж")),
        (("Mies", "Nainen"), ("Mies", "Nainen")),
        (("Laki-laki", "Perempuan"), ("Laki-laki", "Perempuan")),
        (("1", "2"), None),
        (("Male", "Unknown"), None),
        (("Male Owned", "Female Owned", "Unanswered"), ("Male Owned", "Female Owned")),
    ],
)
def test_men_and_women_are_told_by_words_and_by_letters_beside_each_other(values: tuple, pair: tuple | None) -> None:
    assert vocabulary.men_and_women(values) == pair


def test_words_of_a_name_are_parted_by_signs_and_capitals_without_accents() -> None:
    assert parts("applicantRace-1") == ("applicant", "race", "1")
    assert parts("Décision Finale") == ("decision", "finale")
    assert parts("Łódź ıİ") == ("lodz", "ii")
