# memory.write: whether an operation that changes what is remembered may go to the engine.
# Denied unless nothing speaks against it; `deny` holds the reasons.
package memory.write

import data.memory.common
import rego.v1

default allow := false

allow if {
	common.complete
	count(deny) == 0
}

deny contains reason if some reason in common.deny

operations := {
	"remember",
	"update",
	"forget",
	"purge",
	"ingest",
	"build_graph",
	"delete_dataset",
	"review",
	"taint",
	"set_hold",
	"release_hold",
	"end_session",
}

# Of people only, and of officers only.
holding := {"set_hold", "release_hold"}

personal := {"set_hold", "release_hold", "end_session"}

keeping := {"remember", "update", "ingest"}

removing := {"forget", "purge", "delete_dataset"}

scoped := {"remember", "purge", "ingest"}

deny contains "operation_unknown" if not known

known if input.operation in operations

# A taint only ever takes rights away, and a hold changes no memory: a freeze does not stop them.
deny contains "frozen" if {
	input.frozen
	not unstopped
}

unstopped if input.operation == "taint"

unstopped if input.operation in holding

# Only people review: an agent's own token never does, whomever it acts for.
deny contains "review_by_agent" if {
	input.operation == "review"
	not by_a_person
}

by_a_person if input.actor_kind == "user"

deny contains "by_no_person" if {
	input.operation in personal
	not by_a_person
}

deny contains "not_an_officer" if {
	input.operation in holding
	not by_an_officer
}

by_an_officer if "security_officer" in input.roles

# What an agent keeps is held where its policy says so, and not because the agent says so.
deny contains "hold_by_agent" if {
	input.operation in keeping
	input.legal_hold == true
	not by_a_person
	not held_by_policy
}

held_by_policy if input.policy.legal_hold == true

deny contains "scope_missing" if {
	input.operation in scoped
	count(common.scopes) == 0
}

deny contains "scope_not_written" if {
	not scopeless
	some scope in common.scopes
	not scope in open
}

scopeless if input.operation in {"review", "taint"}

scopeless if input.operation in personal

open contains scope if {
	some scope in common.scopes
	scope in input.policy.write_scopes
}

deny contains "team_missing" if {
	"team" in common.scopes
	input.operation in scoped
	not with_team
}

with_team if input.team != null

deny contains "kind_not_allowed" if {
	kind_counts
	not kind_allowed
}

kind_allowed if input.kind in input.policy.allowed_kinds

kind_counts if input.operation == "remember"

kind_counts if {
	input.operation in keeping
	input.kind != null
}

deny contains "classification_too_high" if {
	classification_counts
	not classified_low_enough
}

classification_counts if input.operation in {"remember", "ingest"}

classification_counts if {
	input.operation in keeping
	input.classification != null
}

classified_low_enough if {
	common.classifications[input.classification] <= common.classifications[input.policy.max_classification]
}

deny contains "personal_data" if {
	input.operation in keeping
	input.personal_data
	not input.policy.allow_personal_data
}

deny contains "legal_hold" if {
	input.operation in removing
	input.policy.legal_hold
}

deny contains "legal_hold" if {
	input.operation in {"forget", "delete_dataset"}
	input.legal_hold == true
}

deny contains "too_large" if {
	input.operation in {"remember", "update"}
	not small
}

# Bytes: a megabyte of characters, each as long as it can be.
small if {
	is_number(input.size)
	input.size <= 4194304
}
