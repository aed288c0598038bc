#include "apps/furlong/commands.h"

namespace furlong::app {

const std::vector<CommandSpec>& commands() {
  static const std::vector<CommandSpec> list{
      race_command(),
      devices_command(),
      doctor_command(),
      init_command(),
      export_command(),
      emit_command(),
      knobs_list_command(),
      knobs_show_command(),
      knobs_lint_command(),
      knobs_audit_command(),
      pack_make_command(),
      pack_show_command(),
      pack_verify_command(),
      pack_sign_command(),
      pack_keygen_command(),
      shard_store_command(),
      shard_plan_command(),
      shard_check_command(),
      shard_show_command(),
      shard_rebudget_command(),
      shard_receipt_command(),
      shard_profile_command(),
      shard_top_command(),
      shard_sweep_command(),
      shard_fit_command(),
      run_command(),
      agent_command(),
      agent_check_command(),
      agent_status_command(),
      agent_demo_command(),
      fleet_keygen_command(),
      fleet_root_command(),
      fleet_rotate_command(),
      fleet_publish_command(),
      fleet_verify_command(),
      fleet_stop_command(),
      hub_command(),
      worker_command(),
      quarantine_list_command(),
      quarantine_clear_command(),
      completion_command(),
      version_command(),
      shard_job_command(),
      trial_command(),
      worker_back_command(),
      help_pages_command(),
      knobs_page_command(),
  };
  return list;
}

}  // namespace furlong::app
