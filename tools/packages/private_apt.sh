# Sourced by tools that fetch packages without touching the machine's own apt.
# shellcheck shell=bash
#
# Contract: apt with APT_CONFIG=FOLDER/apt.conf neither reads nor writes the machine's lists, caches and packages. Needs no
# root.

# private_apt FOLDER [STATUS]: makes the folders of such an apt, and its configuration. The caller puts its sources into
# FOLDER/sources. STATUS: dpkg's list of installed packages; without it, nothing counts as installed.
private_apt() {
  mkdir -p "$1"/{sources,state/lists/partial,cache/archives/partial}
  cat >"$1/apt.conf" <<CONF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$1/sources";
Dir::State "$1/state";
Dir::State::status "${2:-/dev/null}";
Dir::Cache "$1/cache";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "";
CONF
}
