# Sourced by tools that make a Debian root from this machine's Debian mirror and run commands in it.
# shellcheck shell=bash
#
# Contract: nothing here writes outside the given folder or mounts outside the caller's mount namespace; must be root. The
# caller defines `die` and `say`.

# root_mirror: prints the mirror that the machine's apt uses for Debian. It has every suite.
root_mirror() {
  local mirror suite=bookworm
  # shellcheck disable=SC2016 # apt expands it
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Release: $suite" 'Component: main' | head -n 1)
  [ -n "$mirror" ] || die "this machine's apt sources do not name $suite; run this on Debian 12"
  echo "${mirror%/}"
}

# root_bootstrap SUITE FOLDER [PACKAGES]: makes debootstrap's smallest variant in FOLDER/root, with ca-certificates and the
# packages (separated by commas), without apt's lists.
root_bootstrap() {
  local suite=$1 folder=$2 mirror
  command -v debootstrap >/dev/null || die 'debootstrap is missing; run apt-get install debootstrap'
  mirror=$(root_mirror)
  debootstrap --variant=minbase --include="ca-certificates${3:+,$3}" "$suite" "$folder/root" "$mirror" >"$folder/log" 2>&1 ||
    { tail -n 20 "$folder/log" >&2; die 'debootstrap failed; its last messages are above'; }
  root_clean "$folder/root"
}

# root_kept ARCHIVE SUITE FOLDER [PACKAGES]: the same, from ARCHIVE, which is made once.
root_kept() {
  local archive=$1 suite=$2 folder=$3
  if [ ! -e "$archive" ]; then
    say "making a root of $suite, once"
    root_bootstrap "${@:2}"
    mkdir -p "${archive%/*}"
    (
      trap 'rm -f "$archive.$$"' EXIT
      tar -C "$folder/root" --one-file-system -I 'gzip -1' -cpf "$archive.$$" .
      mv -T "$archive.$$" "$archive"
    )
  else
    mkdir "$folder/root"
    tar -C "$folder/root" -xpf "$archive"
  fi
}

# root_cached SUITE FOLDER [PACKAGES]: the same, with the archive in the user's cache.
root_cached() {
  root_kept "${XDG_CACHE_HOME:-$HOME/.cache}/xschedd/hosts/$1.tar.gz" "$@"
}

# root_clean ROOT: removes the files that apt fetched.
root_clean() {
  rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin "$1"/var/cache/apt/archives/*.deb
}

# root_carry ROOT [SUITE]: gives the root access to the machine's mirror: apt's configuration, keys, certificates, name
# resolution. SUITE: a suite other than the machine's, whose keys the root has.
root_carry() {
  local new=$1 suite=${2:-bookworm} mirror
  mirror=$(root_mirror)
  rm -rf "$new/etc/apt.before"
  mv "$new/etc/apt" "$new/etc/apt.before"
  cp -aL /etc/apt "$new/etc/apt"
  if [ "$suite" != bookworm ]; then
    # apt's source lists name the machine's suite.
    rm -rf "$new"/etc/apt/sources.list "$new"/etc/apt/sources.list.d/* "$new/etc/apt/trusted.gpg.d"
    [ ! -d "$new/etc/apt.before/trusted.gpg.d" ] || cp -a "$new/etc/apt.before/trusted.gpg.d" "$new/etc/apt/trusted.gpg.d"
    echo "deb $mirror $suite main" >"$new/etc/apt/sources.list"
  fi
  rm -rf "$new/etc/apt.before"
  mkdir -p "$new/usr/share/keyrings" "$new/usr/local/share/ca-certificates"
  cp -anL /usr/share/keyrings/. "$new/usr/share/keyrings"
  cp -anL /usr/local/share/ca-certificates/. "$new/usr/local/share/ca-certificates"
  cp -L /etc/resolv.conf /etc/hosts "$new/etc"
  cp -L /etc/ssl/certs/ca-certificates.crt "$new/etc/ssl/certs/ca-certificates.crt"
}

# root_mount ROOT [SHM]: mounts the root's /proc, /sys, /dev and /run; the caller must already be in its own mount namespace.
# SHM: a folder to mount as /dev/shm; without it, /dev/shm is empty.
root_mount() {
  local new=$1 shm=${2-} node
  mount -t proc proc "$new/proc"
  mount --rbind /sys "$new/sys"
  mount -t tmpfs -o mode=0755,nosuid dev "$new/dev"
  for node in null zero full random urandom tty; do
    : >"$new/dev/$node"
    mount --bind "/dev/$node" "$new/dev/$node"
  done
  mkdir "$new/dev/shm" "$new/dev/pts"
  if [ -n "$shm" ]; then
    mount --bind "$shm" "$new/dev/shm"
  else
    mount -t tmpfs -o mode=1777,nosuid,nodev shm "$new/dev/shm"
  fi
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$new/dev/pts"
  ln -s pts/ptmx "$new/dev/ptmx"
  ln -s /proc/self/fd "$new/dev/fd"
  mount -t tmpfs -o mode=0755,nosuid,nodev run "$new/run"
}

# root_environment: sets the array `environment` for a command in a root; of the caller's environment, it has only the proxy
# settings.
root_environment() {
  local name
  environment=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  for name in http_proxy https_proxy ftp_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [ -z "${!name+set}" ] || environment+=("$name=${!name}")
  done
}
