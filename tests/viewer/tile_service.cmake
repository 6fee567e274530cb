attnscope_test(viewer_state OPTIMISE
  SOURCES
    ${PROJECT_SOURCE_DIR}/tests/core/fake_backend.cpp
    ${PROJECT_SOURCE_DIR}/tests/io/export_fixture.cpp
    ${PROJECT_SOURCE_DIR}/tests/kernels/attention_case.cpp
    service_harness.cpp
    test_overview.cpp
    test_stored_tile_source.cpp
    test_tile_scheduler.cpp
    test_tile_service.cpp
    test_whole_panels.cpp
  LIBRARIES attnscope::viewer_state)
