# The live runtime, as it is compiled for a framework: on the user's machine in one library with the capture, and for the
# tests beside libtorch. In the order in which one unit can include them.
set(runtime_headers
    device_sums.h device_sums_kernel.h program.h performer.h call.h encoding.h host_memory.h slots.h streams.h rebuild.h engine.h verifier.h settings.h
    lent_memory.h exposures.h mismatch.h guards.h extension_calls.h op_lock.h op_costs.h op_matcher.h runtime.h tape.h plan_follower.h plan_followers.h
    place.h source_lines.h step_trace.h step_kinds.h decision_log.h budget_runtime.h)
set(runtime_sources
    device_sums.cpp verifier.cpp settings.cpp lent_memory.cpp exposures.cpp mismatch.cpp program.cpp call.cpp encoding.cpp
    host_memory.cpp slots.cpp streams.cpp rebuild.cpp runtime.cpp runtime_actions.cpp runtime_exposures.cpp op_matcher.cpp runtime_match.cpp runtime_plans.cpp
    runtime_steps.cpp tape.cpp plan_follower.cpp plan_followers.cpp step_trace.cpp step_kinds.cpp source_lines.cpp decision_log.cpp
    budget_log.cpp budget_storages.cpp budget_room.cpp budget_sources.cpp budget_settle.cpp budget_exposures.cpp
    budget_beside.cpp budget_actions.cpp budget_results.cpp budget_runtime.cpp)
set(runtime_exports live_exports.cpp)  # what the shim calls
foreach(list runtime_headers runtime_sources runtime_exports)
    list(TRANSFORM ${list} PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
endforeach()
# What it takes from other rooms, none of which knows a framework.
set(runtime_headers
    ${PROJECT_SOURCE_DIR}/live/wire/live_program.h ${PROJECT_SOURCE_DIR}/live/wire/step_figures.h
    ${PROJECT_SOURCE_DIR}/executor/codec/codec_kernels.h ${runtime_headers})
