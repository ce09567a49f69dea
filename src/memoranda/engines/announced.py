"""What each provider announces and guarantees, known without asking any of its instances."""

from __future__ import annotations

from memoranda.engines.contract import KNOWLEDGE, MEMORY, CapabilityGroups, Isolation, ProviderName

ANNOUNCED: dict[ProviderName, CapabilityGroups] = {
    "builtin": CapabilityGroups(memory=MEMORY),
    "mem0": CapabilityGroups(memory=MEMORY),
    "cognee": CapabilityGroups(
        memory=("forget", "list", "purge", "get_health", "get_capabilities"), knowledge=KNOWLEDGE
    ),
}


def guaranteed(provider: ProviderName, *, dedicated: bool, access_control: bool, own_key: bool) -> Isolation:
    """What separates a tenant from others on a declared instance.

    Args:
        dedicated: the instance was installed for this tenant alone.
        access_control: it separates its own users.
        own_key: the tenant has a user, and so a key, of its own there.
    """
    if dedicated:
        return "dedicated_instance"
    return "backend" if provider == "cognee" and access_control and own_key else "logical"
