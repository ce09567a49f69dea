#!/usr/bin/env bash
# What `make demo` does: open a Home, remember something, recall it with its evidence. `memoranda` is on the PATH.
# The Home stays in demo/home, so that an agent can be connected to it; delete the folder to begin anew.
set -euo pipefail
cd "$(dirname "$0")/.."

home=demo/home
program=$(command -v memoranda)

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
plain() { printf '\n%s\n' "$*"; }
[ -t 1 ] || say() { plain "$@"; }
run() {
  local word line='$ memoranda'
  for word in "$@"; do
    case $word in *[!A-Za-z0-9./_-]*) word="'${word//\'/\'\\\'\'}'" ;; esac
    line+=" $word"
  done
  printf '%s\n' "$line"
  memoranda "$@" | sed 's/^/  /'
}

if [ -e "$home" ]; then
  say "1. The Home of an earlier demo is still in $home and is used again."
else
  say "1. A Home is made in $home from the examples: a year of a small team's memory."
  "$(dirname "$program")/python" examples/lay.py "$home"
fi
export MEMORANDA_HOME="$PWD/$home"
printf '$ export MEMORANDA_HOME=%s\n' "$MEMORANDA_HOME"

say '2. Something is remembered. It is a file and a commit before the command returns.'
run remember 'Ostermoor Lines wants its timetable for 2027 by the 15th of January, as a printed booklet.' \
  --subject customer/ostermoor --kind fact --agent cleo

say '3. It is recalled, with its evidence, beside what was known before.'
run recall 'By when does Ostermoor need its timetable?' --k 3 --budget 600

say '4. Time has two axes. What did we believe in April about the contact at Ostermoor?'
run recall 'Who is our contact at Ostermoor?' --at 2026-04-15 --k 1 --budget 200

say '5. Et en français :'
run recall 'Où envoyer les factures des Îles Grises ?' --k 1 --budget 200

say 'Where the files lie'
cat <<END
  $MEMORANDA_HOME/memory/notes     the notes: one Markdown file each; read, edit, diff and delete them
  $MEMORANDA_HOME/agents           what was said, word for word, by day
  $MEMORANDA_HOME/.git             every change, with its reason: git -C $home log -p memory/
  $MEMORANDA_HOME/.memoranda       indexes, a cache: delete it at any moment and nothing is lost
END

say 'Connect an agent'
cat <<END
  Claude Code   claude mcp add memoranda -- $program mcp --home $MEMORANDA_HOME
  Codex         codex mcp add memoranda -- $program mcp --home $MEMORANDA_HOME
  Cursor        in ~/.cursor/mcp.json:
                {"mcpServers": {"memoranda": {"command": "$program", "args": ["mcp", "--home", "$MEMORANDA_HOME"]}}}
END
