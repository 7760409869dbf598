#!/bin/sh
# What the guest runs (the host put it here): the suites of this boot, then the journal.
cd /mnt/host || exit 1
echo begun >begun
# A boot that the host ends, or that dies, never comes to the journal's end: of that one there is what it said until then. In a file of its own,
# since the other one is written anew in one go, also by main.ts.
nice -n 19 journalctl --boot --follow --no-tail --output=short-monotonic >journal-live.log 2>&1 &
node guest.mjs
echo "exit $?"
journalctl --boot --no-pager --output=short-monotonic >journal.log 2>&1
