#pragma once
// The made-up libraries in a test's own process.

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "furlong/base/os/file.h"
#include "furlong/base/os/library.h"
#include "furlong/device/device.h"

namespace furlong::fake {

/// The file of a library, such as "cuda", "cuda_without_cuFuncGetParamInfo", "nvrtc".
inline std::string library(const std::string& name) {
  return std::string(FURLONG_FAKE_LIBRARIES) + "/libfurlong_fake_" + name + ".so";
}

/// Points the back end to them, and its cache to a folder of this run's own. Before anything opens a driver.
class Fakes {
 public:
  Fakes() {
    if (auto folder = TemporaryFolder::make("furlong-fake-cuda"))
      folder_ = std::make_unique<TemporaryFolder>(*std::move(folder));
    setenv("FURLONG_CUDA_DRIVER", library("cuda").c_str(), 1);
    setenv("FURLONG_NVRTC", library("nvrtc").c_str(), 1);
    setenv("FURLONG_NVML", library("nvml").c_str(), 1);
    setenv("FURLONG_FAKE_CUDA", "=", 1);
    if (folder_ == nullptr) return;
    caches() = folder_->path();
    setenv("FURLONG_CACHE_DIR", folder_->path().c_str(), 1);
  }

  /// Anew for all three. What one script compiles (with its registers, its shared memory) is no other's: each
  /// has a cache of its own.
  static void script(const std::string& text) {
    if (!caches().empty()) {
      const std::string own = std::to_string(std::hash<std::string>{}(text));
      setenv("FURLONG_CACHE_DIR", (caches() / own).c_str(), 1);
    }
    for (const char* name : {"cuda", "nvrtc", "nvml"}) script(name, text);
  }
  static void script(const std::string& name, const std::string& text) {
    Result<Library> opened = Library::open(library(name));
    if (!opened) std::abort();
    const std::string symbol = "furlong_fake_" + name.substr(0, name.find('_')) + "_script";
    auto* set = opened->function<void(const char*)>(symbol.c_str());
    if (set == nullptr) std::abort();
    set(text.empty() ? "=" : text.c_str());
    kept().push_back(*std::move(opened));
  }

 private:
  static std::filesystem::path& caches() {
    static std::filesystem::path folder;  // empty: there is none
    return folder;
  }
  static std::vector<Library>& kept() {
    static auto* libraries = new std::vector<Library>;  // a card's threads outlive main()
    return *libraries;
  }
  std::unique_ptr<TemporaryFolder> folder_;
};

}  // namespace furlong::fake
