#pragma once
// One function a command file; commands.cpp lists them in the order of the help.

#include "apps/furlong/command.h"

namespace furlong::app {

CommandSpec race_command();
CommandSpec devices_command();
CommandSpec doctor_command();
CommandSpec init_command();
CommandSpec export_command();
CommandSpec emit_command();
CommandSpec knobs_list_command();
CommandSpec knobs_show_command();
CommandSpec knobs_lint_command();
CommandSpec knobs_audit_command();
CommandSpec pack_make_command();
CommandSpec pack_show_command();
CommandSpec pack_verify_command();
CommandSpec pack_sign_command();
CommandSpec pack_keygen_command();
CommandSpec shard_store_command();
CommandSpec shard_plan_command();
CommandSpec shard_check_command();
CommandSpec shard_show_command();
CommandSpec shard_rebudget_command();
CommandSpec shard_receipt_command();
CommandSpec shard_profile_command();
CommandSpec shard_top_command();
CommandSpec shard_sweep_command();
CommandSpec shard_fit_command();
CommandSpec run_command();
CommandSpec agent_command();
CommandSpec agent_check_command();
CommandSpec agent_status_command();
CommandSpec agent_demo_command();
CommandSpec fleet_keygen_command();
CommandSpec fleet_root_command();
CommandSpec fleet_rotate_command();
CommandSpec fleet_publish_command();
CommandSpec fleet_verify_command();
CommandSpec fleet_stop_command();
CommandSpec fleet_tuning_command();
CommandSpec fleet_explain_command();
CommandSpec fleet_regressions_command();
CommandSpec fleet_records_command();
CommandSpec fleet_import_command();
CommandSpec fleet_export_command();
CommandSpec fleet_simulate_command();
CommandSpec fleet_demo_command();
CommandSpec hub_command();
CommandSpec hub_copy_command();
CommandSpec hub_backup_command();
CommandSpec hub_token_command();
CommandSpec hub_machines_command();
CommandSpec hub_canary_command();
CommandSpec hub_retire_command();
CommandSpec hub_prune_command();
CommandSpec worker_command();
CommandSpec quarantine_list_command();
CommandSpec quarantine_clear_command();
CommandSpec completion_command();
CommandSpec version_command();
CommandSpec shard_job_command();    // hidden: a prefix's job, for its peak
CommandSpec worker_back_command();  // hidden: the process of a worker that owns the device
CommandSpec trial_command();        // hidden: the trial process of a race
CommandSpec help_pages_command();   // hidden: writes docs/cli
CommandSpec knobs_page_command();   // hidden: writes docs/knobs.md

}  // namespace furlong::app
