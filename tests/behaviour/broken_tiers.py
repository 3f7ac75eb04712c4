"""Tiers that cannot be used, go away, or fill up."""

import contextlib
import os
import shutil
import subprocess

from harness import Place, Skip, expect, expect_equal

# Rank 0 says this when a tier cannot be opened.
UNUSABLE = (r"^diapause: warning: the (memory|global) tier cannot be used: .*not-a-directory",)
ROOM_BYTES = 24 << 20


@contextlib.contextmanager
def place_with_unusable(site, tier):
    """Its path leads through a regular file, which stops root too."""
    with Place(site) as place:
        (place.path / "not-a-directory").touch()
        place.configure(place.settings,
                        {tier: {"path": str(place.path / "not-a-directory" / "inside")}})
        yield place


def goes_on_at_level_4_without_a_memory_tier(site):
    with place_with_unusable(site, "memory") as place:
        place.run("tiers", "without-memory", messages=UNUSABLE)
        place.run("tiers", "read-4", messages=UNUSABLE)


def goes_on_at_levels_1_to_3_without_a_global_tier(site):
    with place_with_unusable(site, "global") as place:
        place.run("tiers", "without-global", messages=UNUSABLE)
        place.run("tiers", "read-4", messages=UNUSABLE)


def returns_to_level_4_when_the_global_tier_is_back(site, files="rank"):
    with Place(site) as place:
        place.configure(place.settings, {"global": {"files": files}})
        run = place.start("tiers", "global-lost")
        run.wait_for((place.path / "take-away").exists, "the first checkpoints")
        shutil.rmtree(place.global_)
        place.global_.touch()
        (place.path / "taken-away").touch()
        run.wait_for((place.path / "give-back").exists, "the checkpoints without a global tier")
        place.global_.unlink()
        place.global_.mkdir(mode=0o700)
        (place.path / "given-back").touch()
        run.succeed(messages=(r"^diapause: warning: .*global",))
        shutil.rmtree(place.memory, ignore_errors=True)
        place.run("tiers", "read-5")


def returns_to_level_4_when_the_global_tier_with_shared_files_is_back(site):
    returns_to_level_4_when_the_global_tier_is_back(site, files="auto")


def launcher_with_small_tmpfs(path, size=ROOM_BYTES):
    """A command before mpiexec: everything behind it sees a small file system
    of its own at `path`."""
    own_namespace = (["unshare", "--mount"] if os.getuid() == 0
                     else ["unshare", "--user", "--map-root-user", "--mount"])
    mount = f"mount -t tmpfs -o size={size},mode=700 tmpfs '{path}'"
    tried = subprocess.run([*own_namespace, "sh", "-c", mount], capture_output=True, text=True)
    if tried.returncode != 0:
        raise Skip(
            f"needs to mount a file system in a namespace of its own: {tried.stderr.strip()}")
    return [*own_namespace, "sh", "-c", mount + ' && exec "$@"', "sh"]


def goes_on_after_the_memory_tier_was_full(site):
    with Place(site, ranks=2) as place:
        place.configure(place.settings, {"local": {"path": ""}})
        place.launcher = launcher_with_small_tmpfs(place.memory) + place.launcher
        place.run("full", "memory", place.memory / "filler")


def capture_elsewhere(site, where, levels, files="rank", **shape):
    """In the background, with a memory tier too small for one of the ranks."""
    messages = [f"captures are written to the {where} tier while the program waits: .* memory tier "
                ".* is full"]
    with Place(site, **shape, **{"async": {"mode": "thread"}}) as place:
        place.configure(place.settings, {"global": {"files": files}})
        right = place.compute("uneven", "--plain")
        place.launcher = launcher_with_small_tmpfs(place.memory, 2 << 20) + place.launcher
        place.start("uneven", "--levels", levels, "--die-at", "11").be_killed()
        expect_equal(place.compute("uneven", "--levels", levels, messages=messages), right,
                     "result")
        expect(place.events("uneven", "restart"), "nothing was restored")


def captures_in_the_global_tier_what_memory_cannot_take(site):
    capture_elsewhere(site, "global", "4")


def captures_in_shared_files_of_the_global_tier_what_memory_cannot_take(site):
    capture_elsewhere(site, "global", "4", files=2)


def captures_in_the_local_tier_what_memory_cannot_take(site):
    capture_elsewhere(site, "local", "132", tier="local", ranks_per_node=1)


def keeps_on_the_local_disk_what_finds_no_room_in_memory(site):
    capture_elsewhere(site, "local", "132", ranks_per_node=1)


def goes_on_after_the_global_tier_was_full(site, files="rank"):
    with Place(site, ranks=2) as place:
        place.configure(place.settings, {"global": {"files": files}})
        place.global_.mkdir(mode=0o700)
        place.launcher = launcher_with_small_tmpfs(place.global_) + place.launcher
        place.run("full", "global", place.global_ / "filler",
                  messages=["ledger.jsonl: No space left"])
        expect(not any(place.global_.iterdir()), "the small file system was not used")


def goes_on_after_the_global_tier_with_shared_files_was_full(site):
    goes_on_after_the_global_tier_was_full(site, files=1)
