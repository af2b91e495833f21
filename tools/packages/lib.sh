# Sourced by ./dev: the Debian packages that its commands need, and functions that install them.
# shellcheck shell=bash disable=SC2034 # the caller uses the lists
#
# Contract: `install` uses no network when nothing is missing, and finds packages that have another name in this release of
# Debian. The caller defines `say` and `die`.

# What meson.build needs, and what `./dev demo` runs.
packages_build=(
  gcc g++ binutils meson ninja-build pkgconf dpkg-dev ca-certificates
  libgrpc++-dev libgrpc-dev protobuf-compiler-grpc protobuf-compiler libprotobuf-dev libabsl-dev
  libc-ares-dev zlib1g-dev libspdlog-dev libfmt-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev
  libexpected-dev libncurses-dev libboost-dev libslurm-dev catch2 hipcc libamdhip64-dev libhsa-runtime-dev rocm-device-libs
  python3 procps systemd
)
# What the tests also need.
packages_tests=(
  tmux valgrind shellcheck libjemalloc2 libtcmalloc-minimal4
  python3-setuptools python3-wheel python3-venv python3-jsonschema python3-prometheus-client python3-yaml mypy mandoc zsh
)
packages_lint=(clang-format clang-tidy shellcheck git)
packages_fuzz=(clang llvm libclang-rt-dev)
packages_package=(debhelper dh-python pybuild-plugin-pyproject python3-setuptools lintian git)
packages_dist=(zstd binutils rpm)
packages_image=(python3 busybox-static libc-bin)
packages_package_test=(debootstrap systemd-container util-linux)
packages_surface=(g++ binutils python3)

# absent PACKAGE...: prints those that are not installed and that no installed package provides. Fast: reads only dpkg's
# status.
absent() {
  # shellcheck disable=SC2016 # dpkg-query expands it
  comm -23 <(printf '%s\n' "$@" | sort -u) <(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' |
    awk '$1 == "installed" { gsub(/\([^)]*\)|,/, " "); for (i = 2; i <= NF; ++i) print $i }' | sort -u)
}

# called PACKAGE...: prints each one's name in this release: the same, or that of a package that provides it
# (libtcmalloc-minimal4t64), or with the highest version at the end (rocm-device-libs-17). Fails, printing the unknown ones,
# if there are any.
called() {
  local name other known unknown=()
  known=$(apt-cache pkgnames | sort)
  for name; do
    if grep -qxF -- "$name" <<<"$known"; then echo "$name"; continue; fi
    other=$(apt-cache showpkg "$name" 2>/dev/null | sed '1,/^Reverse Provides/d' | cut -d ' ' -f 1 | sort -V | tail -n 1)
    [ -n "$other" ] || other=$(awk -v stem="$name-" 'index($0, stem) == 1 && substr($0, length(stem) + 1) ~ /^[0-9.]+$/' \
      <<<"$known" | sort -V | tail -n 1)
    if [ -n "$other" ]; then echo "$other"; else unknown+=("$name"); fi
  done
  [ ${#unknown[@]} -eq 0 ] || { echo "${unknown[*]}"; return 1; }
}

# apt_progress LOG: writes apt-get's output to LOG, and prints a line of its status every ten seconds.
apt_progress() {
  local line kind percent next=$((SECONDS + 10))
  while IFS= read -r line; do
    case $line in
      dlstatus:* | pmstatus:*)
        [ "$SECONDS" -ge "$next" ] || continue
        next=$((SECONDS + 10))
        IFS=: read -r kind _ percent _ <<<"$line"
        kind=${kind/dlstatus/fetched}
        say "packages: ${percent%.*} % ${kind/pmstatus/unpacked and set up}"
        ;;
      *) printf '%s\n' "$line" >>"$1" ;;
    esac
  done
}

# install PACKAGE...: installs those that are missing.
install() {
  local missing as_root=() log names
  mapfile -t missing < <(absent "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  # They may be installed under another name.
  if names=$(called "${missing[@]}"); then
    # shellcheck disable=SC2086 # a name has no space
    mapfile -t missing < <(absent $names)
    [ ${#missing[@]} -gt 0 ] || return 0
  fi
  if [ "$(id -u)" != 0 ]; then
    as_root=(sudo)
    [ -t 0 ] || as_root+=(-n)
    "${as_root[@]}" true 2>/dev/null ||
      die "packages are missing and sudo is not available; run as root: apt-get install --no-install-recommends ${missing[*]}"
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  say "installing ${#missing[@]} packages and their dependencies: ${missing[*]}"
  log=$(mktemp)
  local -a get=("${as_root[@]}" apt-get -y -q -o Acquire::Retries=3 -o APT::Status-Fd=1)
  # The lists are fetched only when necessary: when they are absent or name files that the mirror no longer has.
  if ! get_called "$log" "${missing[@]}"; then
    : >"$log"
    "${get[@]}" update </dev/null 2>&1 | apt_progress "$log" || true
    if ! get_called "$log" "${missing[@]}"; then
      tail -n 30 "$log" >&2
      rm -f "$log"
      die 'apt-get could not install them; its messages are above. Check the network and /etc/apt, and run this again'
    fi
  fi
  rm -f "$log"
}

# get_called LOG PACKAGE...: installs them under their names in this release, with the caller's `get`.
get_called() {
  local log=$1 names name
  shift
  if ! names=$(called "$@"); then
    echo "no package is named or provides ${names##*$'\n'}" >>"$log"
    return 1
  fi
  for name in $names; do
    case " $* " in *" $name "*) ;; *) say "this release has $name instead" ;; esac
  done
  # shellcheck disable=SC2086 # a name has no space
  "${get[@]}" install --no-install-recommends $names </dev/null 2>&1 | apt_progress "$log"
}
