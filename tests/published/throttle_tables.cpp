// Prints the tables of docs/throttling.md:
//   throttle_tables <folder of the published tables>
#include <cstdio>
#include <exception>

#include "published/comparison.hpp"

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fputs("usage: throttle_tables FOLDER\n", stderr);
    return 2;
  }
  std::fputs(diapause::published::tables(diapause::published::read_cases(argv[1])).c_str(), stdout);
  return 0;
} catch (const std::exception& exception) {
  std::fprintf(stderr, "throttle_tables: %s\n", exception.what());
  return 1;
}
