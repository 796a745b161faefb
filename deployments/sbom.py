"""Writes the list of what an image runs on, in the format of CycloneDX: the libraries of its locks, torch among them.

Packages of Debian come from a second file, which `dpkg-query` in the image wrote (`make sbom IMAGE=evenhand:0.2.0`).

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
LOCKS = ("requirements.lock", "requirements-dask.lock", "requirements-torch.lock")
"""What the image installs."""


def main() -> None:
    """Write the list to the file that is named, with the packages in a second one."""
    target, *packages = sys.argv[1:]
    libraries = [component for name in LOCKS for component in components_of((ROOT / name).read_text())]
    system = [component for name in packages for component in packages_of(Path(name).read_text())]
    JsonV1Dot6(Bom(components=[*libraries, *system])).output_to_file(target, allow_overwrite=True, indent=2)
    sys.stdout.write(f"{target}: {len(libraries)} libraries, {len(system)} packages of Debian\n")


def packages_of(listed: str) -> Iterator[Component]:
    """The packages of a list of `dpkg-query`: name, version and architecture in each line, separated by spaces."""
    for line in listed.splitlines():
        name, version, architecture = line.split()
        address = PackageURL("deb", "debian", name, version, {"arch": architecture})
        yield Component(name=name, version=version, type=ComponentType.LIBRARY, bom_ref=str(address), purl=address)


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
