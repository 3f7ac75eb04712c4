// Writes states of the solvers that codecs are measured with, for `diapause study compress`: a file
// for each field, and a line NAME.raw:TYPE:SHAPE for each on standard output.
//
//   states DIRECTORY
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "fields.hpp"
#include "measure.hpp"

int main(int argc, char** argv) {
  if (argc != 2) bench::give_up("usage: states DIRECTORY");
  for (bench::Field& field : bench::solver_fields()) {
    std::ranges::replace(field.name, ' ', '_');
    const std::string path = std::string(argv[1]) + "/" + field.name + ".raw";
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(field.bytes.data()),
               static_cast<std::streamsize>(field.bytes.size()));
    if (!file.flush()) bench::give_up("cannot write " + path);
    std::string shape;
    for (const auto dim : field.shape.dims) {
      if (dim != 1) shape += (shape.empty() ? "" : "x") + std::to_string(dim);
    }
    std::printf("%s.raw:float64:%s\n", field.name.c_str(), shape.c_str());
  }
}
