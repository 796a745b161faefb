"""Writes the list of what an installation runs on, in the format of CycloneDX, from its locks (`make sbom`).

CycloneDX's own tool is not used: it brings a parser of addresses, which each process of Prefect and of Great
Expectations that finds it installed loads for more than a second of its start.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-torch.lock")


def main() -> None:
    """Write the list to the file that is named."""
    components = [component for name in LOCKS for component in components_of((ROOT / name).read_text())]
    JsonV1Dot6(Bom(components=components)).output_to_file(sys.argv[1], allow_overwrite=True, indent=2)
    sys.stdout.write(f"{sys.argv[1]}: {len(components)} libraries\n")


def components_of(lock: str) -> Iterator[Component]:
    """The libraries of a lock, each with its version and the sha256 of the files that it may come in."""
    for name, version, files in re.findall(r"^([\w.-]+)==([^\s;\\]+)(.*(?:\n    --hash.*)*)", lock, re.MULTILINE):
        address = PackageURL("pypi", None, name.lower(), version)
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in re.findall(r"sha256:(\w+)", files)]
        distribution = ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION, url=XsUri(str(address)), hashes=hashes, comment="any of its files"
        )
        yield Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"{name}=={version}",
            purl=address,
            external_references=[distribution],
        )


if __name__ == "__main__":
    main()
