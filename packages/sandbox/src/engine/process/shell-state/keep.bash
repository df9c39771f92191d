# Runs a script ($2) in a bash that first takes over what the one before left in a file ($1): directory,
# variables, functions, options, aliases; and leaves its own behind when it exits. The file is replaced
# as a whole, so that a command that is killed leaves the state of before. $3 is a directory to start
# in, or empty; what follows are variables of this command, NAME=value.
# A script's own EXIT trap replaces ours: then nothing is left behind.
__caisson_file=$1 __caisson_script=$2 __caisson_cwd=$3
shift 3

__caisson_variables() {
  local __name __line
  for __name in $(compgen -v); do
    case $__name in
      __*|BASH*|FUNCNAME|GROUPS|DIRSTACK|EPOCH*|SRANDOM|RANDOM|SECONDS|LINENO|PIPESTATUS|_|SHLVL|PWD|OLDPWD|TERM|UID|EUID|PPID|SHELLOPTS|HISTCMD|COMP_*) continue ;;
    esac
    __line=$(declare -p "$__name" 2>/dev/null) || continue
    # `declare -ax NAME=…`: read-only ones cannot be set again; -g, because the file is read in any scope.
    set -- $__line
    case $2 in
      -*r*) continue ;;
      --) printf 'declare -g %s\n' "${__line#declare -- }" ;;
      *) printf 'declare -g %s\n' "${__line#declare }" ;;
    esac
  done
}

__caisson_save() {
  local __new=$__caisson_file.$$
  {
    __caisson_variables
    declare -f | awk '/^__caisson_[a-z]* \(\)/ { ours = 1 } !ours { print } /^}/ { ours = 0 }'
    alias -p
    shopt -p | grep -v 'login_shell\|restricted_shell'
    printf 'umask %s\n' "$(umask)"
    printf 'cd -- %q\n' "$PWD"
    # Last, because `errexit` and `nounset` would disturb the rest.
    grep -v 'interactive\|monitor\|posix' "$__new.options"
  } >"$__new" 2>/dev/null && mv -f -- "$__new" "$__caisson_file"
  rm -f -- "$__new.options"
}

mkdir -p -- "${__caisson_file%/*}"
if [ -r "$__caisson_file" ]; then . "$__caisson_file" 2>/dev/null; fi
if [ -n "$__caisson_cwd" ]; then cd -- "$__caisson_cwd"; fi
for __caisson_variable in "$@"; do export "$__caisson_variable"; done
set --
# The options are written here and not in the function: a command substitution would not see all of them.
trap '__caisson_status=$?; set +o >"$__caisson_file.$$.options"; set +eu; __caisson_save; exit $__caisson_status' EXIT
eval "$__caisson_script"
