// Prints the vectors, or with --write puts them into tests/vectors. By hand, when a signed body has
// changed; the change of that file is then the change that other implementations have to follow.
#include "tests/attest/vectors.h"

#include <fstream>
#include <iostream>

int main(int argc, char* argv[]) {
  using namespace praefectus::attest;
  auto text = spelledOut(vectors());
  if (argc == 1) {
    std::cout << text;
    return std::cout.good() ? 0 : 1;
  }
  if (argc != 2 || std::string(argv[1]) != "--write") {
    std::cerr << "usage: vector-writer [--write]\n";
    return 2;
  }
  std::ofstream file(vectorFile(), std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file.good() ? 0 : 1;
}
