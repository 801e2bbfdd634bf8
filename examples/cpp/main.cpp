// Super-resolve one depth map without Python: a photo and a small depth map in, metres out.
//
//     ducos-upscale ducos-tiny.onnx photo.ppm depth.pgm sharp.pfm [--sensor tof] [--mode repair]
//                   [--noise 0.002]
//
// photo.ppm is P6 with 8 bits, depth.pgm P5 with 16 bits: millimetres, 0 is a hole. sharp.pfm has
// the size of the photo. The file ducos-tiny.onnx comes from `ducos export -o ducos-tiny.onnx`.
#include <onnxruntime_cxx_api.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Picture {
  int64_t width = 0, height = 0, channels = 0;
  std::vector<float> values;  // channel by channel, rows from top to bottom
};

// A number of a header; comments begin with # and end with their line.
static int64_t number(std::istream& file, const std::string& name) {
  while ((file >> std::ws).peek() == '#') file.ignore(1 << 20, '\n');
  int64_t read = 0;
  if (!(file >> read) || read <= 0 || read > 65535) throw std::runtime_error(name + " has a damaged header");
  return read;
}

// `kind` is P5 (grey) or P6 (colours); each stored value times `scale`.
static Picture read_picture(const std::string& name, const std::string& kind, int64_t most, float scale) {
  std::ifstream file(name, std::ios::binary);
  std::string magic(2, ' ');
  if (!file.read(magic.data(), 2)) throw std::runtime_error("cannot read " + name);
  if (magic != kind) throw std::runtime_error(name + " begins with " + magic + ", expected " + kind);
  Picture picture;
  picture.width = number(file, name);
  picture.height = number(file, name);
  picture.channels = kind == "P6" ? 3 : 1;
  const int64_t said = number(file, name);
  if ((said > 255) != (most > 255)) {
    throw std::runtime_error(name + " has values up to " + std::to_string(said) + ", expected " + std::to_string(most));
  }
  file.get();  // one white space, then the pixels
  const int64_t pixels = picture.width * picture.height, bytes = most > 255 ? 2 : 1;
  std::vector<uint8_t> raw(pixels * picture.channels * bytes);
  if (!file.read(reinterpret_cast<char*>(raw.data()), raw.size())) throw std::runtime_error(name + " is cut off");
  picture.values.resize(pixels * picture.channels);
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t c = 0; c < picture.channels; ++c) {
      const uint8_t* at = &raw[(i * picture.channels + c) * bytes];
      picture.values[c * pixels + i] = scale * static_cast<float>(bytes == 2 ? at[0] * 256 + at[1] : at[0]);
    }
  }
  return picture;
}

// PFM: rows from bottom to top, the bytes of this computer (little-endian).
static void write_depth(const std::string& name, const float* depth, int64_t width, int64_t height) {
  std::ofstream file(name, std::ios::binary);
  file << "Pf\n" << width << ' ' << height << "\n-1.0\n";
  for (int64_t row = height - 1; row >= 0; --row) {
    file.write(reinterpret_cast<const char*>(depth + row * width), width * sizeof(float));
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + name);
}

// Where a word stands among those of a subject; the file's header says
// {"mode": ["faithful", "repair"], "sensor": ["unknown", "tof", ...]}.
static int64_t place_of(const std::string& words, const std::string& subject, const std::string& word) {
  const size_t begin = words.find('[', words.find('"' + subject + '"'));
  const std::string list = words.substr(begin, words.find(']', begin) - begin);
  const size_t found = list.find('"' + word + '"');
  if (found == std::string::npos) throw std::runtime_error("unknown " + subject + " " + word + "; choose one of " + list + "]");
  int64_t place = 0;
  for (size_t i = 0; i < found; ++i) place += list[i] == ',';
  return place;
}

int main(int count, char** given) try {
  if (count < 5 || count % 2 == 0) {
    std::cerr << "ducos-upscale GRAPH.onnx PHOTO.ppm DEPTH.pgm OUT.pfm [--sensor NAME] [--mode NAME] [--noise METRES]\n";
    return 2;
  }
  std::map<std::string, std::string> options = {{"--sensor", "unknown"}, {"--mode", ""}, {"--noise", "0"}};
  for (int i = 5; i < count; i += 2) {
    if (!options.count(given[i])) throw std::runtime_error(std::string("unknown option ") + given[i]);
    options[given[i]] = given[i + 1];
  }
  if (options["--mode"].empty()) options["--mode"] = options["--sensor"] == "tof" ? "repair" : "faithful";
  Picture photo = read_picture(given[2], "P6", 255, 1.0f / 255);
  Picture low = read_picture(given[3], "P5", 65535, 0.001f);
  Picture trust = low;
  for (float& value : trust.values) value = value > 0 ? 1.0f : 0.0f;

  Ort::Env environment(ORT_LOGGING_LEVEL_ERROR, "ducos");
  Ort::SessionOptions settings;
  // Opened one after the other, onnxruntime searches each of 8300 results for a buffer to use again,
  // which takes ten seconds; with two threads between operators it does not look. In return a frame
  // takes almost twice the time. A program that runs for hours leaves these two lines out.
  settings.SetExecutionMode(ORT_PARALLEL);
  settings.SetInterOpNumThreads(2);
  settings.SetIntraOpNumThreads(1);
  Ort::Session session(environment, given[1], settings);

  Ort::AllocatorWithDefaultOptions allocator;
  auto about = session.GetModelMetadata().LookupCustomMetadataMapAllocated("words", allocator);
  if (!about) throw std::runtime_error(std::string(given[1]) + " was not written by ducos export");
  std::array<int64_t, 1> mode = {place_of(about.get(), "mode", options["--mode"])};
  std::array<int64_t, 1> sensor = {place_of(about.get(), "sensor", options["--sensor"])};
  std::array<float, 1> noise = {std::stof(options["--noise"])}, metric = {1.0f};

  auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  auto tensor = [&memory](auto& values, std::vector<int64_t> shape) {
    return Ort::Value::CreateTensor(memory, values.data(), values.size(), shape.data(), shape.size());
  };
  const std::array<const char*, 7> inputs = {"image", "depth", "trust", "noise", "metric", "mode", "sensor"};
  const std::array<const char*, 1> outputs = {"depth_out"};  // also: "sigma", "source"
  std::vector<Ort::Value> fed;
  fed.push_back(tensor(photo.values, {1, 3, photo.height, photo.width}));
  fed.push_back(tensor(low.values, {1, 1, low.height, low.width}));
  fed.push_back(tensor(trust.values, {1, 1, low.height, low.width}));
  fed.push_back(tensor(noise, {1}));
  fed.push_back(tensor(metric, {1}));
  fed.push_back(tensor(mode, {1}));
  fed.push_back(tensor(sensor, {1}));
  auto made = session.Run(Ort::RunOptions{}, inputs.data(), fed.data(), fed.size(), outputs.data(), outputs.size());
  write_depth(given[4], made[0].GetTensorData<float>(), photo.width, photo.height);
  std::cout << low.width << "x" << low.height << " -> " << photo.width << "x" << photo.height << ": " << given[4] << "\n";
  return 0;
} catch (const std::exception& problem) {
  std::cerr << problem.what() << "\n";
  return 2;
}
