"""What compose.yaml and the Dockerfile have containers do, for the tests to hold against what was run."""

from deployed import SERVICES, image_words

Words = tuple[str, ...]


def words_of_containers() -> set[Words]:
    """Every command and health check; an image's own where a service names none."""
    ours = {name: service for name, service in SERVICES.items() if service["image"].startswith("evenhand:")}
    commands = {tuple(service.get("command") or image_words("CMD")) for service in ours.values()}
    checks = {
        tuple(service["healthcheck"]["test"])
        for service in SERVICES.values()
        if "test" in service.get("healthcheck", {})
    }
    return commands | checks | {tuple(image_words("CMD")), tuple(image_words("HEALTHCHECK"))}
