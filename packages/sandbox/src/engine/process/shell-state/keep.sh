# As keep.bash, for a sandbox without bash: directory and exported variables only.
__caisson_file=$1 __caisson_script=$2 __caisson_cwd=$3
shift 3
if command -v bash >/dev/null 2>&1; then
  exec bash --noprofile --norc -c "$__caisson_bash" bash "$__caisson_file" "$__caisson_script" "$__caisson_cwd" "$@"
fi
unset __caisson_bash
mkdir -p -- "${__caisson_file%/*}"
if [ -r "$__caisson_file" ]; then . "$__caisson_file" 2>/dev/null; fi
if [ -n "$__caisson_cwd" ]; then cd -- "$__caisson_cwd"; fi
for __caisson_variable in "$@"; do export "$__caisson_variable"; done
unset __caisson_variable
set --
__caisson_quote() { printf '%s' "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"; }
trap '{ export -p | grep -v "__caisson_"; printf "cd -- "; __caisson_quote "$PWD"; echo; } >"$__caisson_file.$$" && mv -f -- "$__caisson_file.$$" "$__caisson_file"' EXIT
eval "$__caisson_script"
