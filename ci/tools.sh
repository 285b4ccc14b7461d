#!/usr/bin/env bash
# Installs all that the other scripts need, which each of them would otherwise do for itself.

# shellcheck source=ci/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
group tools

for tool in "${TOOLS[@]}"; do
    if "have_$tool" 2>/dev/null; then
        record "install $tool" ran 0 "is there"
    else
        need "$tool"
    fi
done

finish
