// What must be true of a run's files together: whole ones go on with the same bits wherever the
// program was killed, and files that don't belong together are refused.
#include <doctest/doctest.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "09_language_model/config.hpp"
#include "10_pretrained/model/load_model.hpp"
#include "10_pretrained/model/save_model.hpp"
#include "10_pretrained/model/tokenizer.hpp"
#include "13_training/trainer/checksum.hpp"
#include "13_training/trainer/run_folder.hpp"
#include "files/files.hpp"
#include "random.hpp"
#include "support/apart.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"
#include "support/tried.hpp"

// Stands before the system's own fsync: write_file calls it before a file gets its name, and after.
static int calls_before_the_end = -1;
extern "C" int fsync(int file) {
  if (calls_before_the_end >= 0 && calls_before_the_end-- == 0) std::raise(SIGKILL);
  return int(syscall(SYS_fsync, file));
}

namespace t2t::resume_test {

using std::size_t;
using Bad = std::runtime_error;
using Contents = std::map<std::string, std::string>;

static constexpr size_t steps = 6, every = 2;

static Config tiny() {
  return {.block = llama_style(8, 2, 1, 12), .L = 1, .V = 257, .T_max = 6, .tied = true};
}
static Ids text_ids(int seed, int count) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back(97 + (i * i + seed) % 23);
  return ids;
}

/// A run as the program does it, without what it prints.
static void train(const RunFolder& run, Trainer& trainer, LossCurve curve, const RunRecord& record,
                  std::span<const int> held_out, size_t last = steps) {
  while (trainer.steps_done() < last) {
    curve.push_back({trainer.step()});
    const bool due = trainer.steps_done() % record.every == 0;
    if (due) curve.back().held_out = trainer.loss_of(held_out);
    if (due) save_run(run, trainer, byte_tokenizer(), curve, record);
  }
}
static void begin(const RunFolder& run, int seed = 1, size_t last = steps) {
  save_ids(run.train(), text_ids(seed, 200));
  save_ids(run.held_out(), text_ids(seed, 30));
  const MappedIds train_ids(run.train(), 257), held_out(run.held_out(), 257);
  Random random{std::uint64_t(seed)};
  Trainer trainer(
      Model(tiny(), draw_model(tiny(), random)),
      {.B = 2, .T = 6, .schedule = {5e-3f, 1e-3f, 2, steps}, .seed = std::uint64_t(seed)},
      train_ids.ids());
  const RunRecord record = record_of(train_ids.ids(), held_out.ids(), every);
  save_run(run, trainer, byte_tokenizer(), {}, record);
  train(run, trainer, {}, record, held_out.ids(), last);
}
static void resume(const RunFolder& run) {
  const GgufFile model = GgufFile::open(run.model()), state = GgufFile::open(run.state());
  const RunRecord record = read_record(run, model, state);
  const Config config = read_config(model);
  const MappedIds train_ids(run.train(), config.V), held_out(run.held_out(), config.V);
  Trainer trainer(Model(config, read_weights(model, config)), read_options(state), train_ids.ids());
  LossCurve curve = go_on(run, model, state, read_tables(model), trainer);
  train(run, trainer, std::move(curve), record, held_out.ids());
}

static Contents contents_of(const RunFolder& run) {
  Contents contents;
  for (const std::filesystem::path& file : run.files())
    if (std::filesystem::exists(file)) contents[file.filename().string()] = read_file(file);
  return contents;
}
static void write(const RunFolder& run, const Contents& contents) {
  std::filesystem::create_directories(run.path);
  for (const auto& [name, bytes] : contents) write_file(run.path / name, bytes);
}
static RunFolder in(const Folder& folder, const char* name) {
  std::filesystem::create_directories(folder.path / name);
  return {folder.path / name};
}

#if !defined(__SANITIZE_THREAD__)  // which does not let a copy of a process with threads go on
TEST_CASE("a run that is killed before or after any file gets its name ends with the same bytes") {
  const Folder folder;
  const RunFolder whole = in(folder, "whole"), run = in(folder, "run");
  begin(whole);
  const Contents want = contents_of(whole);
  CHECK(want.size() == 6);
  const auto ends = [&](int calls, const auto& work) {
    return ending_apart([&] {
      omp_set_num_threads(1);
      calls_before_the_end = calls;
      work();
    });
  };
  // Each of the four saves writes four files, with two calls each; the two texts come before them.
  size_t resumed = 0;
  for (int calls = 0; calls < 2 * (2 + 4 * 4); ++calls) {
    CAPTURE(calls);
    std::filesystem::remove_all(run.path);
    std::filesystem::create_directory(run.path);
    CHECK(ends(calls, [&] { begin(run); }) == "signal 9");
    if (!std::filesystem::exists(run.state())) continue;  // it begins again
    // And killed again in what comes first when it goes on.
    for (const int again : {0, 1, 2, 3, 4, 5})
      CHECK(ends(again, [&] { resume(run); }) == "signal 9");
    CHECK(ends(-1, [&] { resume(run); }) == "returned");
    CHECK((contents_of(run) == want));
    ++resumed;
  }
  CHECK(resumed == 3 * 8 + 1);
}
#endif

TEST_CASE("a run that goes on keeps its own checkpoints' distance") {
  const Folder folder;
  const RunFolder run = in(folder, "run");
  begin(run, 1, 2);
  const GgufFile model = GgufFile::open(run.model()), state = GgufFile::open(run.state());
  const auto record = tried([&] { return read_record(run, model, state); });
  if (record) CHECK(record->every == every);
}

TEST_CASE("a file of another run is refused by name") {
  const Folder folder;
  const RunFolder one = in(folder, "one"), other = in(folder, "other"), run = in(folder, "run");
  begin(one, 1, 4);
  begin(other, 2, 4);
  const Contents mine = contents_of(one), theirs = contents_of(other);
  const auto refusal = [&](const std::string& name, const std::string& bytes) {
    Contents mixed = mine;
    mixed[name] = bytes;
    write(run, mixed);
    try {
      resume(run);
      return std::string("accepted");
    } catch (const Bad& error) {
      CHECK((contents_of(run) == mixed));
      return std::string(error.what()).substr(run.path.string().size() + 1);
    }
  };
  const std::string sum =
      ": is damaged or of another run: its checksum is not the one in state.gguf";
  CHECK(refusal("train.ids", theirs.at("train.ids")) == "train.ids" + sum);
  CHECK(refusal("train.ids", mine.at("held_out.ids")) == "train.ids" + sum);
  CHECK(refusal("train.ids", mine.at("train.ids").substr(0, 400)) == "train.ids" + sum);
  CHECK(refusal("held_out.ids", theirs.at("held_out.ids")) == "held_out.ids" + sum);
  CHECK(refusal("state.gguf", theirs.at("state.gguf")) == "train.ids" + sum);
  CHECK(refusal("model.gguf", theirs.at("model.gguf")) ==
        "model.gguf: is damaged or of another run: its weights are not those of state.gguf");

  // A model of an earlier step, which a run that was killed can't leave, and one of another shape.
  const RunFolder early = in(folder, "early");
  begin(early, 1, 2);
  CHECK(refusal("model.gguf", contents_of(early).at("model.gguf")) ==
        "model.gguf: is damaged or of another run: its weights are not those of state.gguf");
  write(run, mine);
  Config wider = tiny();
  wider.block.F = 14;
  Random random(1);
  save_model(run.model(), wider, draw_model(wider, random), byte_tokenizer(),
             "trained for 4 steps");
  CHECK(refusal("model.gguf", read_file(run.model())) == "model.gguf" + sum);
  write(run, mine);
  CHECK_NOTHROW(resume(run));
}

TEST_CASE("a changed byte is refused in each file, and the file stays") {
  const Folder folder;
  const RunFolder one = in(folder, "one"), run = in(folder, "run");
  begin(one, 1, 2);
  const Contents mine = contents_of(one);
  write(run, mine);
  for (const auto& [file, bytes] : mine) {
    const std::string& name = file;
    if (name.starts_with("loss.")) continue;  // they are drawn anew from the checkpoint
    size_t tried = 0, accepted = 0;
    for (size_t at = 0; at < bytes.size(); at += name.ends_with("ids") ? 7 : 61) {
      std::string changed = bytes;
      changed[at] = char(changed[at] ^ (1 << at % 8));
      write_file(run.path / name, changed);
      ++tried;
      try {
        resume(run);
        ++accepted;
        write(run, mine);
      } catch (const Bad&) {
        CHECK((read_file(run.path / name) == changed));
      }
    }
    write_file(run.path / name, bytes);
    CAPTURE(name);
    CHECK(tried > 15);
    CHECK(accepted <= (name.ends_with("gguf") ? 3 : 0));  // zeros that fill up to a tensor's place
  }
}

TEST_CASE("a run of an older program says so") {
  const Folder folder;
  const RunFolder run = in(folder, "run");
  begin(run, 1, 2);
  std::string state = read_file(run.state());
  state[state.find("training.checksum\x08") + 16] = 'n';
  write_file(run.state(), state);
  REFUSES_AS(resume(run),
             run.state().string() +
                 ": has no training.checksum, since an older program wrote it; begin a new run",
             Bad);
}

TEST_CASE("the checksum is FNV-1a, as it is published") {
  CHECK(Checksum().text() == "cbf29ce484222325");
  const std::string letters = "foobar";
  const std::span<const std::uint8_t> bytes{reinterpret_cast<const std::uint8_t*>(letters.data()),
                                            6};
  CHECK(Checksum().add(bytes.first(1)).text() == "af63db4c8601ead9");  // of "f"
  CHECK(Checksum().add(bytes).text() == "85944171f73967e8");
  CHECK(Checksum().add("ab").add("c").text() != Checksum().add("a").add("bc").text());
}

}  // namespace t2t::resume_test
