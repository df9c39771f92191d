#!/bin/sh
# `npm test`: sets everything up, then runs every check and every test.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
sh scripts/bootstrap.sh --tests
PATH=$root/node_modules/.bin:$PATH
export PATH
exec node scripts/test.ts "$@"
