"""The encoding of text: decoding a stream to UTF-8, and recognising the encoding of a file.

UTF-8 is proved by the whole file, UTF-16 and UTF-32 by their mark or their zeros. Anything else is a guess, which the
caller shows with words that it decoded. Scope: bytes and their meaning; files and lines are the callers'.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from schemas.audit.source import Encoding

SAMPLE: Final = 2**20
"""Bytes that a guess is made from."""
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # it begins as UTF-16's does
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BY_CODEC: Final = {codecs.lookup(name).name: name for name in get_args(Encoding)} | {
    codecs.lookup(codec).name: name
    for codec, name in (
        *(("shift_jis", "cp932"), ("shift_jis_2004", "cp932"), ("cp949", "euc-kr"), ("johab", "euc-kr")),
        *(("gb2312", "gb18030"), ("gbk", "gb18030"), ("big5hkscs", "big5"), ("cp950", "big5")),
        *(("euc_jis_2004", "euc-jp"), ("eucjisx0213", "euc-jp"), ("koi8-u", "koi8-r"), ("ascii", "utf-8")),
        *(("iso-8859-5", "cp1251"), ("iso-8859-7", "cp1253"), ("iso-8859-8", "cp1255"), ("iso-8859-6", "cp1256")),
    )
}
"""Codec of Python -> the encoding of the spec that reads the same text, or a larger set of characters."""
_WESTERN: Final = ("cp1252", "latin-1", "iso-8859-15", "iso-8859-9", "cp1254", "cp1250")
"""Encodings that are mistaken for each other."""
_OF_LANGUAGES: Final = ("cp1252", "cp1250", "cp1254", "cp1257")
"""Encodings of one byte a letter for languages of Latin writing; the first that reads one of them is taken."""
_LETTERS: Final = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        *("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúü", "áâãàçéêíóôõúü", "àèéìîòóù", "åäæöøéü", "áéëèêïíóöúü", "áéíðóúýþæö"),
        *("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîșțşţ", "čćđšž", "çğıöşüâîû"),
        *("āčēģīķļņšūž", "ąčęėįšųūž", "äõöüšž"),
    )
)
"""Letters beyond ASCII of one language, or of some that are near."""
_IN_TWO_CASES: Final = ("cp1251", "cp1253", "koi8-r")
"""Encodings of other scripts with capitals."""
_OF_SCRIPT: Final = 2**16
"""Bytes that tell a script."""
_SEVERAL_BYTES: Final = ("cp932", "euc-jp", "gb18030", "big5", "euc-kr")
_MOJIBAKE: Final = re.compile("\\w*(?:[ÃÂ][\x80-¿]|â€|Ð[\x80-¿]Ñ)\\w*")
"""Words of UTF-8 that was read as Latin-1 and written as UTF-8 again."""
_ZEROS: Final = 0.2
"""Share of zero bytes in text of two bytes a letter; in Latin writing it is half."""
_WORDS: Final = 3


@dataclass(frozen=True)
class EncodingGuess:
    """The encoding of a file, and what speaks for it."""

    encoding: str
    """As the spec names it."""
    certain: bool
    words: tuple[str, ...] = ()
    """Words with letters beyond ASCII, as they are decoded; of a guess alone."""
    alternatives: tuple[str, ...] = ()
    """Encodings that the same bytes could be of."""
    mojibake: tuple[str, ...] = ()
    """Words that were decoded wrongly before they came here."""


def codec_at(encoding: str, start: bytes) -> str:
    """The codec of a stream by its encoding and its first bytes: which end comes first, and no mark in the text."""
    if encoding in ("utf-16", "utf-32"):
        marked = next((codec for mark, codec in _MARKS if start.startswith(mark) and encoding in codec), None)
        return marked or _unmarked(start) or f"{encoding}-le"
    return encoding


def to_utf8(blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The same text in UTF-8, without a byte order mark; of UTF-8 the bytes as they are.

    Raises:
        UnicodeDecodeError: the text is not in that encoding.
    """
    decoder, first = None, True
    for block in blocks:
        if encoding == "utf-8":
            yield block.removeprefix(codecs.BOM_UTF8) if first else block
        else:
            if decoder is None:
                decoder = codecs.getincrementaldecoder(codec_at(encoding, block))()
            text = decoder.decode(block)
            yield (text.removeprefix("\ufeff") if first else text).encode()
        first = False
    if decoder is not None and (rest := decoder.decode(b"", final=True)):
        yield rest.encode()


def encoding_of(blocks: Callable[[], Iterable[bytes]]) -> EncodingGuess:
    """The encoding of a text.

    Args:
        blocks: Gives the text from its start, whenever it is called.
    """
    sample, counts = b"", np.zeros(256, np.int64)
    decoder, is_utf8, mojibake = codecs.getincrementaldecoder("utf-8")(), True, list[str]()
    for block in blocks():
        if not sample:
            codec = next((codec for mark, codec in _MARKS if block.startswith(mark)), None) or _unmarked(block)
            if codec not in ("", "utf-8"):
                return EncodingGuess(codec[:6], certain=True)
        if not block.isascii() and sample.isascii() and len(sample) >= SAMPLE:
            sample = block[block.find(b"\n") + 1 :]  # what tells encodings apart
        sample += block[: max(SAMPLE - len(sample), 0)]
        if block.isascii():
            is_utf8 = is_utf8 and _decodes(decoder, block) is not None
            continue
        counts += np.bincount(np.frombuffer(block, np.uint8), minlength=256)
        text = _decodes(decoder, block) if is_utf8 else None
        is_utf8 = text is not None
        if text is not None and len(mojibake) < _WORDS:
            mojibake += [word for word in dict.fromkeys(_MOJIBAKE.findall(text)) if word not in mojibake]
    if is_utf8 and _decodes(decoder, b"", final=True) is not None:
        return EncodingGuess("utf-8", certain=True, mojibake=tuple(mojibake[:_WORDS]))
    return _guess(sample, counts, blocks)


def _unmarked(start: bytes) -> str:
    """The codec of text of two or four bytes a letter, by where its zeros are; nothing where they are not."""
    data = np.frombuffer(start[: SAMPLE // 4 * 4][: len(start) // 4 * 4], np.uint8)
    if len(data) < 4 or (data == 0).mean() < _ZEROS:
        return ""
    zeros = [(data[i::4] == 0).mean() for i in range(4)]
    if zeros[1] > 0.9 and zeros[2] > 0.9:
        return "utf-32-le" if zeros[3] > zeros[0] else "utf-32-be"
    odd, even = zeros[1] + zeros[3], zeros[0] + zeros[2]
    return "utf-16-le" if odd > 2 * even else "utf-16-be" if even > 2 * odd else ""


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, final: bool = False) -> str | None:
    try:
        return decoder.decode(block, final)
    except UnicodeDecodeError:
        return None


def _guess(sample: bytes, counts: NDArray[np.int64], blocks: Callable[[], Iterable[bytes]]) -> EncodingGuess:
    """The likeliest encoding that the whole text decodes in."""
    import chardet

    detection = chardet.detect(sample, max_bytes=SAMPLE)["encoding"] or "cp1252"
    try:
        likeliest = _BY_CODEC.get(codecs.lookup(detection).name, "cp1252")  # of a DOS code page too
    except LookupError:
        likeliest = "cp1252"
    if likeliest not in _SEVERAL_BYTES:
        likeliest = _of_capitals(sample) or likeliest
    present = bytes(np.flatnonzero(counts[128:]) + 128)
    encoding = next(name for name in (likeliest, "cp1252", "latin-1") if _fits(name, present, blocks))
    if encoding in (*_WESTERN, "cp1257", "iso-8859-2") and not _is_one_language(encoding, present):
        encoding = next((name for name in _OF_LANGUAGES if _is_one_language(name, present)), encoding)
    rivals = [name for name in _WESTERN if name != encoding and _reads(name, present) is not None]
    if any(byte < 0xA0 for byte in present):  # controls in Latin-1
        rivals = [name for name in rivals if name != "latin-1"]
    if encoding not in _WESTERN:
        rivals = [name for name in ("cp1252", "cp1250") if _reads(name, present) is not None]
        decoders = {name: codecs.getincrementaldecoder(name)() for name in _SEVERAL_BYTES if name != encoding}
        rivals += [name for name, decoder in decoders.items() if _decodes(decoder, sample) is not None]
    same = encoding in _WESTERN and all(_reads(name, present) == _reads(encoding, present) for name in rivals)
    encoding = "cp1252" if same and "cp1252" in rivals else encoding
    text = sample.decode(encoding, errors="ignore")
    words = dict.fromkeys(word for word in re.findall(r"\w+", text) if not word.isascii())
    return EncodingGuess(
        encoding, certain=same, words=tuple(words)[:_WORDS], alternatives=() if same else tuple(rivals)
    )


def _of_capitals(sample: bytes) -> str:
    """The encoding of Greek or Cyrillic text that agrees with itself in small letters; empty where none does.

    A text in capitals alone, without accents, is taken for another language.
    """
    import chardet

    start = sample[:_OF_SCRIPT]
    words = [
        word for word in re.findall(r"[^\W\d_]{3,}", start.decode("cp1252", errors="replace")) if not word.isascii()
    ]
    if 2 * sum(not re.search("[A-Za-z]", word) for word in words) <= len(words):
        return ""
    confidence = {}
    for name in _IN_TWO_CASES:
        small = start.decode(name, errors="ignore").lower().replace("ς", "σ").encode(name, errors="ignore")
        detection = chardet.detect(small)
        if detection["encoding"] and _BY_CODEC.get(codecs.lookup(detection["encoding"]).name) == name:
            confidence[name] = detection["confidence"] or 0.0
    return max(confidence, key=lambda name: confidence[name], default="")


def _is_one_language(encoding: str, present: bytes) -> bool:
    """Whether the letters that bytes mean are those of one language, other signs aside."""
    letters = {letter for letter in _reads(encoding, present) or "" if letter.isalpha() and letter not in "ªºµ"}
    return bool(letters) and any(letters <= alphabet for alphabet in _LETTERS)


def _fits(encoding: str, present: bytes, blocks: Callable[[], Iterable[bytes]]) -> bool:
    """Whether the whole text decodes; with one byte a letter the bytes that occur are enough."""
    if encoding == "utf-8":
        return False
    if encoding not in _SEVERAL_BYTES:
        return _reads(encoding, present) is not None
    decoder = codecs.getincrementaldecoder(encoding)()
    return all(_decodes(decoder, block) is not None for block in blocks()) and (
        _decodes(decoder, b"", final=True) is not None
    )


def _reads(encoding: str, present: bytes) -> str | None:
    """What bytes mean in an encoding of one byte a letter; None where it does not have them, or as controls alone."""
    try:
        text = present.decode(encoding)
    except UnicodeDecodeError:
        return None
    return text if encoding == "latin-1" or not any("\x80" <= letter < "\xa0" for letter in text) else None
