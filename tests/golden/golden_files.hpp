// The small files of all format versions that every later library must read, the broken ones that
// it must refuse, and the seeds of the fuzz targets: all made here, so that a test can compare them
// with the committed ones byte by byte.
#pragma once

#include <map>
#include <string>

#include "base/bytes.hpp"
#include "format/identity.hpp"
#include "format/image.hpp"
#include "format/manifest.hpp"
#include "format/starts.hpp"
#include "process/state.hpp"

namespace diapause::golden {

// Two regions: a float64 block of 2 x 3 at (2, 6) of a 4 x 9 array, with values 0, 0.5, ... 2.5,
// and one uint64, 1200.
ByteVector data_image();
// Returns the parity file of member 1 of group 0: one page of uint8, whose element i is i * 7
// modulo 256.
ByteVector parity_image();
// Returns a manifest of four ranks on two nodes and a third node with one rank. It has levels 1, 2
// and 3, and two groups, one of them with a missing rank.
format::Manifest manifest();
// Returns a manifest of the same ranks at levels 1 and 4, in two shared files: ranks 0 to 2 are in
// the first.
format::Manifest shared_manifest();

// The first one with compressed images of ranks 0 to 3 in the global tier, of a run with one lossy
// restart.
format::Manifest compressed_manifest();

// The identity of a job `heat` that is no copy.
format::JobIdentity identity();

// Three starts of it: two that began anew, on other nodes, and one that went on from the second.
format::Starts starts();

// A block of the codec `lattice` at bound 0.01: 2 x 8 doubles, 20 + i * i / 10 for element i.
ByteVector lattice_block();
// Two regions: that block, as columns 0 to 7 of rows 0 and 1 of an array of as many, and one
// uint64, 1200.
ByteVector compressed_image();
ByteVector packed_image();

// A program, as format version 1 knew it.
process::Job processes_of_version_1();
// With two ends of a TCP connection, in one of which "left" waits, and a pseudo-terminal with
// output in it.
process::Job processes_of_version_2();
// With locks of all kinds, too.
process::Job processes_of_version_3();
// It has pages of files.
process::Job processes_of_version_4();
process::Job processes_of_version_5();
// With a thread that is scheduled in its own way, and a guard page.
process::Job processes_of_version_6();
// With the addresses of the node.
process::Job processes_of_version_7();
// With files that belong to it by their names.
process::Job processes_of_version_8();
// With a process whose end is told by another signal than SIGCHLD.
process::Job processes_of_version_9();
// With what its programs may need of the processor and the kernel.
process::Job processes();

// Maps the path from the root of the repository to the content.
std::map<std::string, ByteVector> all_files();

}  // namespace diapause::golden
