# The Debian 12 packages that cordon needs, once; sourced by deploy/quickstart and tests/run.
# shellcheck shell=bash disable=SC2034

# All that a configure looks for, tests included.
BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config ccache python3
  capnproto libcapnp-dev libssl-dev libseccomp-dev nlohmann-json3-dev libexpat1-dev libspdlog-dev libfmt-dev libcli11-dev
  libgtest-dev libgmock-dev libbenchmark-dev libsimdjson-dev
)
RUN_PACKAGES=(
  qemu-system-x86   # the VMM
  busybox-static    # all of the guest image but its kernel and its agent
  cpio              # packs the guest image
  ca-certificates   # apt sources over https
)
TEST_PACKAGES=(
  clang clang-tidy clang-format libclang-rt-14-dev llvm
  strace
)

# install_packages NAME…: installs those that are missing, and does not call apt where none is.
install_packages() {
  local name missing=()
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "all $# Debian packages are present"
    return 0
  fi
  echo "installing ${#missing[@]} of $# Debian packages: ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3)
  # The lists of a fresh machine may be absent or old; the second try is for old ones.
  if [ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*Packages*' -print -quit 2>/dev/null)" ]; then
    "${apt[@]}" update || return 1
  fi
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" && return 0
  "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}
