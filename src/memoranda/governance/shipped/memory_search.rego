# memory.search: whether an operation that reads what is remembered may go to the engine.
# Denied unless nothing speaks against it; `deny` holds the reasons.
package memory.search

import data.memory.common
import rego.v1

default allow := false

allow if {
	common.complete
	count(deny) == 0
}

deny contains reason if some reason in common.deny

operations := {
	"recall",
	"search",
	"list",
	"get",
	"export",
	"history",
	"search_graph",
	"get_relations",
}

deny contains "operation_unknown" if not known

known if input.operation in operations

deny contains "scope_not_read" if {
	some scope in common.scopes
	not scope in open
}

open contains scope if {
	some scope in common.scopes
	scope in input.policy.read_scopes
}
