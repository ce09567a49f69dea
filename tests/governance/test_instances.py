"""Engine instances: who sees which, what can be withdrawn, and where a tenant's keys may lie."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from memoranda.context import Context
from memoranda.engines.contract import CredentialBody, InstanceDeclaration
from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound
from memoranda.governance.instances import Instances
from memoranda.governance.policies import Policies, parsed
from memoranda.governance.registry import Registry
from memoranda.state.opening import open_database

KEY = CredentialBody(credential_ref="openbao://secret/tenants/acme/mem0#api_key")


def _declaration(id: str = "cognee-1", **more: object) -> InstanceDeclaration:
    return InstanceDeclaration.model_validate(
        {"id": id, "provider": "cognee", "base_url": f"https://{id}:8000", **more}
    )


def test_builtin_rendered_and_declared_instances_are_listed(instances: Instances, context: Context) -> None:
    instances.declare(context, _declaration(), by="root")
    told = [(one.id, one.origin) for one in instances.list_for("acme")]
    assert told == [("builtin", "builtin"), ("mem0-shared", "rendered"), ("cognee-1", "declared")]


@pytest.mark.requirement("P-054", "P-055", "P-057")
def test_a_declaration_has_the_fields_of_the_contract_and_keeps_them(instances: Instances, context: Context) -> None:
    whole = {
        "id": "big", "provider": "mem0", "base_url": "https://mem0.internal:8443/api", "tenant_id": "acme",
        "credential_ref": "env://EAI_CRED_MEMORY_MEM0_API_KEY", "access_control": True, "tls_verify": False,
        "timeout_seconds": 5.5, "manager_cluster": "c1", "manager_service": "s1",
    }  # fmt: skip
    made = instances.declare(context, InstanceDeclaration.model_validate(whole), by="root")
    assert instances.get_for("acme", "big") == made
    assert (made.tenant, made.access_control, made.tls_verify, made.timeout) == ("acme", True, False, 5.5)
    assert (made.manager_cluster, made.manager_service, made.credential_ref) == ("c1", "s1", whole["credential_ref"])
    for wrong in ({"provider": "builtin"}, {"provider": "hybrid"}, {"more": 1}, {"credential_ref": "m0sk_abc"},
                  {"credential_ref": "file:///etc/key"}):  # fmt: skip
        with pytest.raises(ValidationError):
            InstanceDeclaration.model_validate({**whole, **wrong})


@pytest.mark.requirement("P-056")
def test_a_dedicated_instance_is_there_for_its_tenant_only(instances: Instances, context: Context) -> None:
    instances.declare(context, _declaration("acme-only", tenant_id="acme"), by="root")
    assert instances.get_for("acme", "acme-only").tenant == "acme"
    assert "acme-only" in [one.id for one in instances.list_for("acme")]
    assert "acme-only" not in [one.id for one in instances.list_for("globex")]
    key = CredentialBody(credential_ref="openbao://secret/tenants/globex/k#f")
    for ask in (
        lambda name: instances.get_for("globex", name),
        lambda name: instances.credential("globex", name),
        lambda name: instances.set_credential(context, "globex", name, key, by="ana"),
        lambda name: instances.remove_credential("globex", name),
    ):
        with pytest.raises(NotFound) as foreign:
            ask("acme-only")
        with pytest.raises(NotFound) as missing:
            ask("nowhere")
        assert str(foreign.value) == str(missing.value)


def test_another_tenants_dedicated_instance_cannot_be_named_by_a_policy(
    instances: Instances, policies: Policies, context: Context
) -> None:
    instances.declare(context, _declaration("acme-only", tenant_id="acme"), by="root")
    body = parsed({"engine": "cognee", "cognee_instance": "acme-only"})
    with pytest.raises(InvalidInput, match=r"^cognee_instance: there is no such instance"):
        policies.put(context, "globex", "cleo", body, by="ana")
    policies.put(context, "acme", "cleo", body, by="ana")


@pytest.mark.parametrize("id", ["builtin", "hybrid", "mem0-shared", "cognee-1"])
def test_an_id_is_given_once(instances: Instances, context: Context, id: str) -> None:
    instances.declare(context, _declaration(), by="root")
    with pytest.raises(Conflict):
        instances.declare(context, _declaration(id), by="root")


def test_an_instance_for_a_tenant_that_is_not_there_is_refused(instances: Instances, context: Context) -> None:
    with pytest.raises(InvalidInput, match=r"^tenant_id"):
        instances.declare(context, _declaration(tenant_id="nowhere"), by="root")


def test_builtin_and_rendered_instances_cannot_be_withdrawn(instances: Instances) -> None:
    for name in ("builtin", "mem0-shared"):
        with pytest.raises(Conflict):
            instances.remove(name)
    with pytest.raises(NotFound):
        instances.remove("nowhere")


def test_an_instance_in_use_is_not_withdrawn_and_one_that_is_no_longer_used_is(
    instances: Instances, policies: Policies, context: Context
) -> None:
    instances.declare(context, _declaration(), by="root")
    used = parsed({"engine": "hybrid", "mem0_instance": "mem0-shared", "cognee_instance": "cognee-1"})
    policies.put(context, "globex", "cleo", used, by="ana")
    with pytest.raises(Conflict, match="in use"):
        instances.remove("cognee-1")
    policies.put(context, "globex", "cleo", parsed({}), by="ana")
    instances.remove("cognee-1")
    with pytest.raises(NotFound):
        instances.get_for("globex", "cognee-1")
    with pytest.raises(InvalidInput, match=r"^cognee_instance"):
        policies.restore(context, "globex", "cleo", 1, by="ana")


def test_an_instance_withdrawn_by_another_process_is_gone_at_once(
    instances: Instances, context: Context, url: str
) -> None:
    instances.declare(context, _declaration(), by="root")
    instances.get_for("acme", "cognee-1")
    with open_database(url) as other:
        Instances(other).remove("cognee-1")
    with pytest.raises(NotFound):
        instances.get_for("acme", "cognee-1")


class TestKeysOfTenants:
    @pytest.mark.requirement("P-061", "S-048")
    def test_are_references_to_openbao_and_nothing_else(self) -> None:
        for wrong in ("env://EAI_CRED_X", "m0sk_abcdef", "https://bao/x", "openbao://", "OPENBAO://a/b#c", ""):
            with pytest.raises(ValidationError):
                CredentialBody(credential_ref=wrong)

    def test_serve_that_tenant_only(self, instances: Instances, context: Context) -> None:
        assert instances.credential("acme", "mem0-shared") == (None, False)
        instances.set_credential(context, "acme", "mem0-shared", KEY, by="ana")
        assert instances.credential("acme", "mem0-shared") == (KEY.credential_ref, True)
        assert instances.credential("globex", "mem0-shared") == (None, False)
        with pytest.raises(NotFound):
            instances.remove_credential("globex", "mem0-shared")
        instances.remove_credential("acme", "mem0-shared")
        assert instances.credential("acme", "mem0-shared") == (None, False)

    @pytest.mark.parametrize(
        "path",
        ["globex/k#f", "acme2/k#f", "acme/../globex/k#f", "acme/./k#f", "acme#f", "acme/#f", "acme//k#f", "acme/k",
         "acme/%2e%2e/globex/k#f", "acme/k#f?x=1", "acme/k#", "acme/..#f"],
    )  # fmt: skip
    def test_lie_under_the_tenants_own_prefix(self, instances: Instances, context: Context, path: str) -> None:
        body = CredentialBody(credential_ref=f"openbao://secret/tenants/{path}")
        with pytest.raises((Forbidden, InvalidInput)):
            instances.set_credential(context, "acme", "mem0-shared", body, by="ana")
        assert instances.credential("acme", "mem0-shared") == (None, False)

    @pytest.mark.requirement("P-060")
    def test_can_be_set_on_shared_instances_only(self, instances: Instances, context: Context) -> None:
        instances.declare(context, _declaration("acme-only", tenant_id="acme"), by="root")
        for name in ("acme-only", "builtin"):
            with pytest.raises(Conflict):
                instances.set_credential(context, "acme", name, KEY, by="ana")
        instances.declare(context, _declaration("shared"), by="root")
        instances.set_credential(context, "acme", "shared", KEY, by="ana")

    def test_go_with_their_instance_and_with_their_tenant(
        self, instances: Instances, context: Context, registry: Registry
    ) -> None:
        instances.declare(context, _declaration(), by="root")
        instances.set_credential(context, "acme", "cognee-1", KEY, by="ana")
        instances.remove("cognee-1")
        instances.declare(context, _declaration(), by="root")
        assert instances.credential("acme", "cognee-1") == (None, False)
        instances.set_credential(context, "acme", "cognee-1", KEY, by="ana")
        registry.remove_tenant("acme")
        registry.add_tenant(context, "acme")
        assert instances.credential("acme", "cognee-1") == (None, False)


@pytest.mark.parametrize("reference", ["env://HOME", "env://EAI_CRED_", "env://EAI_CRED_x", "openbao://a#b",
                                       "openbao://a/../b#c"])  # fmt: skip
def test_a_declared_reference_names_a_variable_for_keys_or_a_plain_path(
    instances: Instances, context: Context, reference: str
) -> None:
    with pytest.raises(InvalidInput, match=r"^credential_ref"):
        instances.declare(context, _declaration(credential_ref=reference), by="root")


def test_an_instance_with_a_tenant_of_its_own_keeps_the_tenant_from_being_removed(
    instances: Instances, context: Context, registry: Registry
) -> None:
    instances.declare(context, _declaration("acme-only", tenant_id="acme"), by="root")
    with pytest.raises(Conflict):
        registry.remove_tenant("acme")
