"""Checkpoints damaged between two runs: the right data, or a clear refusal."""

import os
import shutil

from harness import Place, expect, expect_equal, flip_byte

STEPS = ["--every", "3", "--steps"]
REPORTS = (r"^diapause: warning: .*(is damaged|ends after)",)


class Story:
    """A job that has taken versions 3 and 6, keeps both, and now starts again after
    something happened to them."""

    def __init__(self, site, levels, **shape):
        self.place = Place(site, **({"level1": {"keep": 2}} | shape))
        self.levels = levels

    def __enter__(self):
        self.right = self.place.compute("moved", "--plain", *STEPS, "9")
        self.place.compute("moved", *STEPS, "6", "--levels", self.levels)
        self.place.traces()
        return self

    def __exit__(self, *exception):
        self.place.__exit__(*exception)

    def images(self, tier, version=6, rank=1, node=None):
        found = self.place.files(tier, f"r{rank}.img", version, node)
        expect(found, f"no image of rank {rank} of version {version} in the {tier} tier")
        return found

    def continues_from(self, version, stepped_back):
        """And ends with the right numbers."""
        result = self.place.compute("moved", *STEPS, "9", "--levels", self.levels, messages=REPORTS)
        trace = self.place.agreed_trace()
        expect_equal([(line[1], line[3]) for line in trace if line[0] == "restart"],
                     [(version, int(stepped_back))], "restarts (version, stepped back)")
        expect_equal(result, self.right, "result")
        return self.place.events("moved", "restart")[-1]


def repairs_a_flipped_byte_from_the_copy_on_the_partner_node(site):
    with Story(site, "2") as story:
        for path in story.images("memory", node="node1"):
            flip_byte(path)
        restart = story.continues_from(6, stepped_back=False)
        expect(restart["sources"][1].startswith("peer"), f"sources: {restart['sources']}")


def repairs_a_flipped_byte_from_parity(site):
    with Story(site, "3") as story:
        flip_byte(story.images("memory")[0])
        restart = story.continues_from(6, stepped_back=False)
        expect_equal(restart["sources"][1], "parity", "source of rank 1")


def repairs_a_flipped_byte_from_the_global_tier(site):
    with Story(site, "4") as story:
        flip_byte(story.images("memory")[0])
        restart = story.continues_from(6, stepped_back=False)
        expect_equal(restart["sources"][1], "global", "source of rank 1")


def does_without_a_truncated_image_in_the_global_tier(site):
    with Story(site, "4") as story:
        os.truncate(story.images("global")[0], 5000)
        story.continues_from(6, stepped_back=False)


def steps_back_once_and_not_again_and_again(site):
    """Both images of a rank are damaged; afterwards there is a new version 6, and it counts."""
    with Story(site, "4") as story:
        os.truncate(story.images("global")[0], 5000)
        flip_byte(story.images("memory")[0])
        restart = story.continues_from(3, stepped_back=True)
        expect("version 6" in restart["reason"], f"the reason is {restart['reason']!r}")
        shutil.rmtree(story.place.files("memory", "r0.img", 9)[0].parents[2])
        for path in story.place.files("global", "r0.img", 9):
            shutil.rmtree(path.parent)
        story.continues_from(6, stepped_back=False)


def steps_back_on_all_ranks_when_one_lacks_the_newest_version(site):
    with Story(site, "1") as story:
        for path in story.images("memory", rank=2):
            path.unlink()
        story.continues_from(3, stepped_back=True)


def refuses_when_nothing_intact_is_left_and_the_program_lives(site):
    with Story(site, "1") as story:
        for version in (3, 6):
            flip_byte(story.images("memory", version)[0])
        refusal = (r"^rank \d: restart_begin: DIAPAUSE_ERR_CORRUPT"
                   r"|^version [36]: no intact image of rank 1"
                   r"|^to start from the beginning, remove|^$")
        result = story.place.compute("moved", *STEPS, "9", messages=REPORTS + (refusal,))
        expect_equal(result, story.right, "result of starting anew")


def does_without_a_damaged_manifest(site):
    with Story(site, "1") as story:
        for path in story.place.files("memory", "manifest.a", 6):
            flip_byte(path)
        story.continues_from(6, stepped_back=False)


def finds_the_images_of_a_node_that_lost_its_manifests(site):
    with Story(site, "1") as story:
        for name in ("manifest.a", "manifest.b"):
            for path in story.place.files("memory", name, 6, "node1"):
                path.unlink()
        story.continues_from(6, stepped_back=False)


def takes_no_checkpoint_for_a_version_that_was_not_finished(site):
    """A kill leaves some images under their final names, and nobody's manifest."""
    with Story(site, "4") as story:
        for tier, names in (("memory", ("r0.img",)), ("global", ())):
            for name in ("manifest.a", "manifest.b", *names):
                for path in story.place.files(tier, name, 6):
                    path.unlink()
        story.continues_from(3, stepped_back=False)
        expect(not story.place.files("global", "r0.img", 6) or
               all("-i2-" in str(path) for path in story.place.files("global", "r0.img", 6)),
               "the rest is still there")


def makes_a_version_of_what_was_captured_on_all_ranks(site):
    """A kill a moment later leaves all images, and nobody's manifest."""
    with Story(site, "4") as story:
        for tier in ("memory", "global"):
            for name in ("manifest.a", "manifest.b"):
                for path in story.place.files(tier, name, 6):
                    path.unlink()
        story.continues_from(6, stepped_back=False)


def is_not_misled_by_files_of_others(site):
    """Names that look like those of versions, and rubbish."""
    with Story(site, "4") as story:
        job = story.images("global")[0].parents[1]
        (job / "v9-rubbish").mkdir()
        (job / "v99999999999999999999999-i1-00").mkdir()
        (job / "spare" / "left-over").write_bytes(b"x" * 5000)
        story.continues_from(6, stepped_back=False)


def follows_no_link_that_looks_like_a_newer_version(site):
    with Story(site, "4") as story:
        version = story.images("global")[0].parent
        (version.parent / version.name.replace("v6", "v8")).symlink_to(version)
        restart = story.continues_from(6, stepped_back=True)
        expect("version 8" in restart["reason"], f"the reason is {restart['reason']!r}")


def survives_as_many_lost_nodes_as_configured(site):
    for parity, lost in ((1, ["node3"]), (2, ["node1", "node3"])):
        with Story(site, "3", level3={"group_nodes": 4, "parity": parity}) as story:
            sizes = [sum(path.stat().st_size for path in story.place.files("memory", name, 6))
                     for name in ("r*.img", "g*.img")]
            share = parity / (4 - parity)
            expect(share <= sizes[1] / sizes[0] < share + 0.1,
                   f"parity takes {sizes[1]} bytes for {sizes[0]}")
            for node in lost:
                for path in story.place.memory.glob(f"*/{node}"):
                    shutil.rmtree(path)
            story.continues_from(6, stepped_back=False)
