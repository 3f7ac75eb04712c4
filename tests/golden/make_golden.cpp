// make_golden <root of the repository>: writes the golden files and the seeds of the fuzz targets.
// Run it when a file is added; a committed file of a released format version never changes.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "golden_files.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden <root of the repository>\n");
    return 2;
  }
  for (const auto& [name, content] : diapause::golden::all_files()) {
    const std::filesystem::path path = std::filesystem::path(argv[1]) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "make_golden: cannot write %s\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
