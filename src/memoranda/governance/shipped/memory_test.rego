# Tests of the decisions, for `opa test policies/` and for the engine in process alike.
package memory_test

import data.memory.search
import data.memory.write
import rego.v1

policy := {
	"modes": ["session", "long_term", "agent"],
	"write_scopes": ["session", "user", "agent"],
	"read_scopes": ["session", "user", "agent"],
	"default_scope": "user",
	"allowed_kinds": ["episodic", "semantic", "procedural", "preference", "fact"],
	"max_classification": "confidential",
	"allow_personal_data": true,
	"retention_days": null,
	"legal_hold": false,
	"infer": false,
	"shared_with": [],
	"teams": [],
	"global_access": false,
	"required_isolation": "logical",
	"recall_top_k": 8,
}

document := {
	"operation": "remember",
	"tenant": "acme",
	"caller_tenant": "acme",
	"organization": null,
	"project": "main",
	"user": "ana",
	"agent": "cleo",
	"session": null,
	"scope": "user",
	"team": null,
	"owner": "ana",
	"kind": "fact",
	"classification": "internal",
	"roles": ["developer"],
	"actor_kind": "user",
	"engine": "builtin",
	"isolation": "logical",
	"personal_data": false,
	"taint": [],
	"policy": policy,
	"frozen": false,
	"size": 100,
	"request_id": "r",
}

but(changes) := object.union(document, changes)

under(changes) := {"policy": object.union(policy, changes)}

written(changes, reasons) if {
	write.deny == reasons with input as but(changes)
	not write.allow with input as but(changes)
}

found(changes, reasons) if {
	search.deny == reasons with input as but(changes)
	not search.allow with input as but(changes)
}

test_a_plain_write_and_a_plain_read_are_allowed if {
	write.allow with input as document
	every operation in ["update", "forget", "delete_dataset", "taint", "review"] {
		write.allow with input as but({"operation": operation})
	}
	every operation in ["recall", "search", "list", "get", "export", "history", "search_graph"] {
		search.allow with input as but({"operation": operation})
	}
}

test_nothing_is_allowed_without_an_input if {
	not write.allow with input as {}
	not search.allow with input as {}
	not write.allow with input as null
	not search.allow with input as "recall"
}

test_what_a_rule_relies_on_must_be_there if {
	every field in ["operation", "tenant", "agent", "actor_kind", "roles", "frozen", "personal_data", "policy"] {
		not write.allow with input as object.remove(document, [field])
		not search.allow with input as object.remove(but({"operation": "recall"}), [field])
	}
	needed := [
		"modes", "read_scopes", "write_scopes", "allowed_kinds", "teams", "max_classification",
		"required_isolation", "allow_personal_data", "global_access", "legal_hold",
	]
	every field in needed {
		not write.allow with input as object.union(
			object.remove(document, ["policy"]),
			{"policy": object.remove(policy, [field])},
		)
	}
}

test_what_may_be_left_out_has_its_type_where_it_is_there if {
	every changes in [{"scopes": true}, {"scopes": "user"}, {"team": ["sales"]}, {"legal_hold": "yes"}] {
		found(object.union({"operation": "get"}, changes), {"input_mistyped"})
	}
	search.allow with input as object.remove(
		but({"operation": "get"}),
		["scope", "team", "kind", "classification", "caller_tenant", "session", "owner", "taint", "size"],
	)
}

test_each_decision_knows_its_own_operations_only if {
	written({"operation": "recall"}, {"operation_unknown"})
	written({"operation": "drop"}, {"operation_unknown"})
	found({"operation": "remember"}, {"operation_unknown"})
}

test_no_other_tenant if {
	written({"caller_tenant": "globex"}, {"other_tenant"})
	found({"operation": "get", "caller_tenant": "globex"}, {"other_tenant"})
}

test_platform_admin_neither_reads_nor_writes if {
	written({"roles": ["platform_admin", "developer"]}, {"platform_admin"})
	found({"operation": "recall", "roles": ["platform_admin"]}, {"platform_admin"})
}

test_an_agents_token_never_reviews if {
	written({"operation": "review", "actor_kind": "agent"}, {"review_by_agent"})
	written({"operation": "review", "actor_kind": "service"}, {"review_by_agent"})
	write.allow with input as but({"operation": "remember", "actor_kind": "agent"})
}

test_holds_and_ends_of_sessions_are_for_people if {
	every operation in write.holding {
		written({"operation": operation}, {"not_an_officer"})
		written({"operation": operation, "actor_kind": "agent"}, {"by_no_person", "not_an_officer"})
		written({"operation": operation, "actor_kind": "agent", "roles": ["security_officer"]}, {"by_no_person"})
	}
	written({"operation": "end_session", "actor_kind": "agent"}, {"by_no_person"})
	write.allow with input as but({"operation": "end_session"})
}

test_an_agent_holds_nothing_by_itself if {
	every operation in write.keeping {
		written({"operation": operation, "legal_hold": true, "actor_kind": "agent"}, {"hold_by_agent"})
		write.allow with input as but({"operation": operation, "legal_hold": true})
		held := object.union({"operation": operation, "legal_hold": true, "actor_kind": "agent"}, under({"legal_hold": true}))
		write.allow with input as but(held)
	}
}

test_a_freeze_stops_every_write_and_no_read if {
	every operation in write.operations - {"taint", "build_graph", "set_hold", "release_hold"} {
		written({"operation": operation, "frozen": true}, {"frozen"})
	}
	write.allow with input as but({"operation": "taint", "frozen": true})
	every operation in write.holding {
		write.allow with input as but({"operation": operation, "frozen": true, "roles": ["security_officer"]})
	}
	search.allow with input as but({"operation": "recall", "frozen": true})
}

test_scopes_that_the_policy_does_not_open if {
	written({"scope": "project"}, {"scope_not_written"})
	written({"scope": "galaxy"}, {"mode_inactive", "scope_not_written", "scope_unknown"})
	written({"scope": null}, {"scope_missing"})
	found({"operation": "recall", "scope": "project"}, {"scope_not_read"})
	found({"operation": "recall", "scope": null, "scopes": ["user", "project"]}, {"scope_not_read"})
	search.allow with input as but({"operation": "recall", "scope": null, "scopes": ["user", "agent"]})
}

test_modes if {
	written(under({"modes": ["session"]}), {"mode_inactive"})
	found(object.union({"operation": "list"}, under({"modes": []})), {"mode_inactive"})
	written({"operation": "build_graph"}, {"mode_inactive"})
	written({"operation": "ingest", "builds_graph": true}, {"mode_inactive"})
	found({"operation": "get_relations"}, {"mode_inactive"})
	found({"operation": "search_graph", "search_type": "GRAPH_COMPLETION"}, {"mode_inactive"})
	search.allow with input as but(object.union({"operation": "get_relations"}, under({"modes": [
		"long_term",
		"knowledge_graph",
	]})))
}

test_global_stays_closed if {
	open := {"write_scopes": ["global"], "read_scopes": ["global"]}
	written(object.union({"scope": "global"}, under(open)), {"global_closed"})
	found(object.union({"operation": "recall", "scope": "global"}, under(open)), {"global_closed"})
	opened := object.union(open, {"global_access": true})
	write.allow with input as but(object.union({"scope": "global"}, under(opened)))
}

test_a_team_has_to_be_named_by_the_policy if {
	open := {"modes": ["shared"], "write_scopes": ["team"], "read_scopes": ["team"], "teams": ["sales"]}
	write.allow with input as but(object.union({"scope": "team", "team": "sales"}, under(open)))
	written(object.union({"scope": "team", "team": "legal"}, under(open)), {"team_not_shared"})
	written(object.union({"scope": "team", "team": null}, under(open)), {"team_missing"})
	found(object.union({"operation": "get", "scope": "team", "team": "legal"}, under(open)), {"team_not_shared"})
	search.allow with input as but(object.union({"operation": "recall", "scope": "team"}, under(open)))
	unnamed := object.union(open, {"teams": []})
	found(object.union({"operation": "recall", "scope": "team"}, under(unnamed)), {"team_not_shared"})
}

test_kinds if {
	written(under({"allowed_kinds": ["episodic"]}), {"kind_not_allowed"})
	written({"kind": null}, {"kind_not_allowed"})
	write.allow with input as but({"operation": "update", "kind": null})
}

test_classification_is_an_order if {
	written({"classification": "restricted"}, {"classification_too_high"})
	written({"classification": "secret"}, {"classification_too_high"})
	written({"classification": null}, {"classification_too_high"})
	write.allow with input as but({"classification": "confidential"})
	written(under({"max_classification": "public"}), {"classification_too_high"})
	write.allow with input as but({"operation": "update", "classification": null})
}

test_personal_data if {
	written(object.union({"personal_data": true}, under({"allow_personal_data": false})), {"personal_data"})
	write.allow with input as but({"personal_data": true})
	write.allow with input as but(under({"allow_personal_data": false}))
}

test_legal_hold_keeps if {
	every operation in ["forget", "purge", "delete_dataset"] {
		written(object.union({"operation": operation}, under({"legal_hold": true})), {"legal_hold"})
	}
	written({"operation": "forget", "legal_hold": true}, {"legal_hold"})
	write.allow with input as but(object.union({"operation": "update"}, under({"legal_hold": true})))
}

test_isolation_is_an_order_and_session_memory_exempt if {
	dedicated := under({"required_isolation": "dedicated_instance"})
	written(object.union({"isolation": "backend"}, dedicated), {"isolation_unsatisfied"})
	written({"isolation": "none"}, {"isolation_unsatisfied"})
	found(object.union({"operation": "recall"}, dedicated), {"isolation_unsatisfied"})
	write.allow with input as but(object.union({"isolation": "dedicated_instance"}, dedicated))
	write.allow with input as but(object.union({"scope": "session"}, dedicated))
}

test_session_memory_stays_at_home if {
	written({"scope": "session", "engine": "mem0-eu"}, {"session_elsewhere"})
	write.allow with input as but({"scope": "user", "engine": "mem0-eu"})
}

test_size if {
	written({"size": 4194305}, {"too_large"})
	written({"size": null}, {"too_large"})
}
