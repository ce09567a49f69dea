# What both decisions on memory have in common. A rule that cannot be worked out denies nothing by itself, so everything
# that a rule relies on is asked for in `complete` first: without it the answer is no. And no `not` stands before what
# looks something up, since engines differ in what is undefined then: it stands before the name of a rule.
package memory.common

import rego.v1

# From the lowest to the highest.
classifications := {"public": 0, "internal": 1, "confidential": 2, "restricted": 3}

# From the weakest to the strongest.
isolations := {"logical": 0, "backend": 1, "dedicated_instance": 2}

mode_of := {
	"session": "session",
	"user": "long_term",
	"project": "long_term",
	"organization": "long_term",
	"global": "long_term",
	"agent": "agent",
	"shared_agents": "shared",
	"team": "shared",
}

# Operations that reach no engine.
engineless if input.operation in {"review", "taint", "history", "set_hold", "release_hold", "end_session"}

complete if {
	is_string(input.operation)
	input.tenant != ""
	is_string(input.tenant)
	is_string(input.agent)
	input.actor_kind in {"user", "agent", "service"}
	is_array(input.roles)
	is_boolean(input.frozen)
	is_boolean(input.personal_data)
	is_array(input.policy.modes)
	is_array(input.policy.read_scopes)
	is_array(input.policy.write_scopes)
	is_array(input.policy.allowed_kinds)
	is_array(input.policy.teams)
	classifications[input.policy.max_classification] >= 0
	isolations[input.policy.required_isolation] >= 0
	is_boolean(input.policy.allow_personal_data)
	is_boolean(input.policy.global_access)
	is_boolean(input.policy.legal_hold)
}

# The scopes that are asked for: one as `scope`, several as `scopes`.
scopes contains input.scope if input.scope != null

scopes contains one if {
	is_array(input.scopes)
	some one in input.scopes
}

deny contains "input_incomplete" if not complete

# What may be left out has to be of its type where it is there: an engine that cannot look into it would pass it over.
deny contains "input_mistyped" if {
	some field in ["scope", "team", "kind", "classification", "caller_tenant", "search_type", "isolation", "engine"]
	type_name(input[field]) in {"boolean", "number", "array", "object"}
}

deny contains "input_mistyped" if {
	some field in ["legal_hold", "builds_graph"]
	type_name(input[field]) in {"string", "number", "array", "object"}
}

deny contains "input_mistyped" if type_name(input.scopes) in {"null", "boolean", "number", "string", "object"}

deny contains "input_mistyped" if {
	some one in scopes
	type_name(one) in {"null", "boolean", "number", "array", "object"}
}

# The agent's tenant is the caller's own; `caller_tenant` comes from the credential, `tenant` from the registry.
deny contains "other_tenant" if {
	input.caller_tenant != null
	input.caller_tenant != input.tenant
}

# Who runs the platform reads no memory and writes none.
deny contains "platform_admin" if "platform_admin" in input.roles

deny contains "scope_unknown" if {
	some scope in scopes
	not mode_of[scope]
}

deny contains "mode_inactive" if {
	some scope in scopes
	not scope in active
}

deny contains "mode_inactive" if {
	graph
	not graph_active
}

active contains scope if {
	some scope in scopes
	mode_of[scope] in input.policy.modes
}

graph_active if "knowledge_graph" in input.policy.modes

graph if input.operation in {"build_graph", "get_relations"}

graph if input.search_type == "GRAPH_COMPLETION"

graph if input.builds_graph == true

deny contains "global_closed" if {
	"global" in scopes
	not input.policy.global_access
}

deny contains "team_not_shared" if {
	"team" in scopes
	input.team != null
	not team_named
}

deny contains "team_not_shared" if {
	"team" in scopes
	input.policy.teams == []
}

team_named if input.team in input.policy.teams

# Session memory is exempt from the isolation that is asked of the engine: it stays at home.
deny contains "isolation_unsatisfied" if {
	not engineless
	scopes != {"session"}
	not isolated
}

isolated if isolations[input.isolation] >= isolations[input.policy.required_isolation]

deny contains "session_elsewhere" if {
	scopes == {"session"}
	not at_home
}

at_home if input.engine == "builtin"
