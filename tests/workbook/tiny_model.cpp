// Writes a small random model as a GGUF file, in whose place ./learn locate takes the real one:
// tiny_model FILE. Its context is longer than locate's texts.
#include "10_pretrained/model/tiny_model.hpp"

#include "files/files.hpp"
#include "random.hpp"

using namespace t2t;

int main(int, char** argv) {
  Random random(1);
  Config config = tiny_config();
  config.T_max = 1024;
  const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
  write_file(argv[1], {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}
