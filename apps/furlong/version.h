#pragma once

namespace furlong::app {

const char* version_text();
/// Short commit hash of the build, "unknown" outside a checkout.
const char* commit_text();

}  // namespace furlong::app
