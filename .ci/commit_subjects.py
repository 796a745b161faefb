"""Checks subjects of commits: at most 72 characters, imperative, plain ("Merge report modules").

``commit_subjects.py FILE`` checks the message that git is about to commit (a commit-msg hook);
``commit_subjects.py --since REVISION`` checks every commit after the revision.
"""

import re
import subprocess
import sys
from pathlib import Path

LONGEST = 72
NO_ORDER = re.compile(
    r"(a|an|the|this|that|these|those|its?|what|wh\w+|how|why|all|some|many|every|each|no|new|more|less|also|and|or|but|if|"
    r"of|for|from|to|in|on|by|with|without|at|as|into|tests|(?!bring|ring)\w+ing|(?!\w*eed$|embed|shed)\w+ed|\w+'s)$",
    re.IGNORECASE,
)
"""First words with which no imperative sentence begins: articles, pronouns, prepositions, participles."""


def faults(subject: str) -> list[str]:
    """What is wrong with a subject; empty if nothing is."""
    first = re.match(r"[\w'-]*", subject)[0]  # type: ignore[index]
    rules = {
        f"has {len(subject)} characters; expected at most {LONGEST}": len(subject) > LONGEST,
        "does not begin with a capital letter": not subject[:1].isupper(),
        f"begins with {first!r}; expected a verb that gives an order, such as Add, Mend or Merge": (
            NO_ORDER.match(first) is not None
        ),
        "begins with a topic and a colon; expected a sentence": re.match(r"[\w ]+:", subject) is not None,
        "ends with a full stop": subject.endswith("."),
        "holds a semicolon; expected one change a commit": ";" in subject,
    }
    return [fault for fault, holds in rules.items() if holds]


def subjects_since(revision: str) -> list[str]:
    """Subjects of all commits after the revision, the newest first; merges by git itself are left out."""
    listed = subprocess.run(
        ["git", "log", "--no-merges", "--format=%s", f"{revision}..HEAD"], capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


def main(words: list[str]) -> int:
    """Exit status: 1 if a subject has a fault, each of which is printed."""
    if words[:1] == ["--since"]:
        subjects = subjects_since(words[1])
    else:
        subjects = Path(words[0]).read_text(encoding="utf-8").splitlines()[:1]
    wrong = [f"{subject!r} {fault}" for subject in subjects for fault in faults(subject)]
    sys.stderr.write("".join(f"commit subject {line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
