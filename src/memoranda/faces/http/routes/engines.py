"""Engine instances: what there is, what each can do, how it is, and whose key opens it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from memoranda.engines.contract import CredentialBody, Health, InstanceCapabilities, InstanceDeclaration
from memoranda.faces.http.calls import Call, taking
from memoranda.faces.http.parts import EngineId
from memoranda.service import engines
from memoranda.service.answers import CredentialSet, Declared, Engines

router = APIRouter(prefix="/v1/memory/engines", tags=["engines"])
Bare = Annotated[Call[Any], Depends(taking())]


@router.get("", summary="The engine instances")
def list_engines(call: Bare) -> Engines:
    """builtin, the instances that the Manager rendered, and the declared ones that the caller's tenant may use."""
    caller = call.caller
    call.nothing()
    found: Engines = engines.list_engines(call.desk, caller)
    return found


@router.post("", status_code=201, summary="Declare an instance")
def declare(call: Annotated[Call[InstanceDeclaration], Depends(taking(InstanceDeclaration))]) -> Declared:
    """Declares an instance of Mem0 or Cognee, and says what was found out about it; for platform_admin."""
    made: Declared = engines.declare(call.desk, call.caller, call.body)
    return made


@router.delete("/{engine_id}", status_code=204, summary="Withdraw an instance", response_class=Response)
def remove(call: Bare, engine_id: EngineId) -> None:
    """Withdraws a declared instance; for platform_admin. 409 while a policy uses it."""
    caller = call.caller
    call.nothing()
    engines.remove(call.desk, caller, engine_id)


@router.get("/{engine_id}/capabilities", summary="What an instance can do")
def capabilities(call: Bare, engine_id: EngineId) -> InstanceCapabilities:
    """The capabilities, and what separates the caller's tenant there; no credential is read, no engine called."""
    caller = call.caller
    call.nothing()
    found: InstanceCapabilities = engines.capabilities(call.desk, caller, engine_id)
    return found


@router.get("/{engine_id}/health", summary="How an instance is")
def health(call: Bare, engine_id: EngineId) -> Health:
    """For tenant_admin, developer, security_officer and auditor."""
    caller = call.caller
    call.nothing()
    found: Health = engines.health(call.desk, caller, engine_id)
    return found


@router.put("/{engine_id}/credential", summary="Set the tenant's key")
def set_credential(
    call: Annotated[Call[CredentialBody], Depends(taking(CredentialBody))], engine_id: EngineId
) -> CredentialSet:
    """The tenant's own key on a shared instance, as an `openbao://` reference; for tenant_admin."""
    done: CredentialSet = engines.set_credential(call.desk, call.caller, engine_id, call.body)
    return done


@router.delete("/{engine_id}/credential", summary="Take the tenant's key away")
def remove_credential(call: Bare, engine_id: EngineId) -> CredentialSet:
    """For tenant_admin."""
    caller = call.caller
    call.nothing()
    done: CredentialSet = engines.remove_credential(call.desk, caller, engine_id)
    return done
