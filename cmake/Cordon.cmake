# What every target of the tree shares: warnings, hardening, sanitizers, and the few verbs with which a folder's
# CMakeLists.txt stays short.

option(CORDON_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(CORDON_FUZZ "Build the libFuzzer targets, and nothing else that needs a service to run" OFF)

# The name of the preset: with it the tests of several build folders can run under one ctest (tests/run).
if(CORDON_FUZZ)
  set(CORDON_PRESET fuzz)
elseif(CORDON_SANITIZE)
  set(CORDON_PRESET dev)
else()
  set(CORDON_PRESET release)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(cordon_options INTERFACE)
target_include_directories(cordon_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_options(cordon_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
  -fno-omit-frame-pointer -fstack-protector-strong -fcf-protection
  $<$<CXX_COMPILER_ID:GNU>:-fstack-clash-protection>
  $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=2>)
target_compile_definitions(cordon_options INTERFACE _GLIBCXX_ASSERTIONS CORDON_VERSION="${PROJECT_VERSION}")
target_link_options(cordon_options INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
if(CORDON_FUZZ)
  # Coverage of the libraries too, not of the target's own file only. clang 14 takes a parameter in a nested class for a
  # shadow of the enclosing class's member: gcc's -Wshadow is the one that counts.
  target_compile_options(cordon_options INTERFACE -fsanitize=fuzzer-no-link -Wno-shadow)
endif()
if(CORDON_SANITIZE)
  target_compile_options(cordon_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(cordon_options INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(cordon_options INTERFACE CORDON_SANITIZED=1)
endif()

# cordon_library(NAME SOURCES a.cpp … [DEPENDS lib …]): one static library, named after its folder (cordon-channel).
function(cordon_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC cordon_options ${arg_DEPENDS})
endfunction()

# cordon_executable(NAME SOURCES a.cpp … [DEPENDS lib …]): a position-independent executable in build/<preset>/bin.
function(cordon_executable name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cordon_options ${arg_DEPENDS})
  target_link_options(${name} PRIVATE -pie)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# cordon_test(NAME SOURCES a_test.cpp … [DEPENDS lib …] [LABEL unit|release|policy|integration|hostile|vm] [TIMEOUT seconds]
#             [SERIAL] [ENVIRONMENT A=B …] [PER_CASE])
# One GoogleTest binary = one ctest test, or one ctest test a case with PER_CASE. Its label is <preset>-<LABEL> (default
# unit), so that tests/run can pick suites from several build folders. Where every case is skipped ctest says Skipped.
if(NOT CORDON_FUZZ)
  add_library(cordon-gtest-main STATIC ${CMAKE_SOURCE_DIR}/tests/support/gtest-main.cpp)
  target_link_libraries(cordon-gtest-main PUBLIC cordon_options GTest::gmock GTest::gtest)
endif()
function(cordon_test name)
  if(CORDON_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "SERIAL;PER_CASE" "TIMEOUT;LABEL" "SOURCES;DEPENDS;ENVIRONMENT" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cordon_test(${name}): unknown: ${arg_UNPARSED_ARGUMENTS}; one LABEL a test")
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} cordon-gtest-main)
  set(properties LABELS ${CORDON_PRESET}-${arg_LABEL} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
  if(arg_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  if(arg_PER_CASE)
    gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
    if(arg_ENVIRONMENT)
      message(FATAL_ERROR "${name}: ENVIRONMENT does not go with PER_CASE")
    endif()
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ${properties})
    set_property(TEST ${name} PROPERTY ENVIRONMENT ${arg_ENVIRONMENT})
  endif()
endfunction()

# cordon_fuzz(NAME SOURCES a_fuzz.cpp … SEEDS folder [DEPENDS lib …]): a libFuzzer target whose ctest run lasts
# CORDON_FUZZ_SECONDS (60) from its seeds. Built only by the fuzz preset.
set(CORDON_FUZZ_SECONDS 60 CACHE STRING "How long each fuzz target runs under ctest, in seconds")
if(CORDON_FUZZ)
  add_custom_target(fuzz-targets)
endif()
function(cordon_fuzz name)
  if(NOT CORDON_FUZZ)
    return()
  endif()
  cmake_parse_arguments(arg "" "SEEDS" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cordon_options ${arg_DEPENDS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz-targets ${name})
  set(work ${CMAKE_CURRENT_BINARY_DIR}/${name}-corpus)
  file(MAKE_DIRECTORY ${work})
  math(EXPR timeout "${CORDON_FUZZ_SECONDS} + 120")
  add_test(NAME ${name} COMMAND ${name} -max_total_time=${CORDON_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048
    -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/ ${work} ${arg_SEEDS})
  set_tests_properties(${name} PROPERTIES LABELS ${CORDON_PRESET}-fuzz TIMEOUT ${timeout})
endfunction()
