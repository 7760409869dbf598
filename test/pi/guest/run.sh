#!/bin/sh
# What the guest runs (the host put it here): the suites of this boot, then the journal.
cd /mnt/host || exit 1
echo begun >begun
node guest.mjs
echo "exit $?"
journalctl --boot --no-pager --output=short-monotonic >journal.log 2>&1
