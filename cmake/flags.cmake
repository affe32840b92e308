# Compiler flags, as one interface target `cpl_flags` that every target of the project links.
#
# No -march=native: one binary runs on every processor of its kind and picks its kernels at run time.
# No -ffast-math: a NaN must stay visible, and a sum must keep its order.
set(CPL_SANITIZE "" CACHE STRING "sanitizers: address,undefined or thread")
set_property(CACHE CPL_SANITIZE PROPERTY STRINGS "" "address,undefined" "thread")

# Warnings are errors with the compilers that the project is tested with; a newer one may only warn.
set(werror OFF)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13
   OR CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 15)
    set(werror ON)
endif()
# Instrumented code makes gcc see dangers that are not there, so a sanitizer build only warns.
if(CPL_SANITIZE)
    set(werror OFF)
endif()
option(CPL_WERROR "treat warnings as errors" ${werror})

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "build type" FORCE)
endif()
# CMake's own default adds -DNDEBUG; a broken promise inside the library should be seen.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)

set(CPL_KERNEL_FLAGS -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off)

add_library(cpl_flags INTERFACE)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(cpl_flags INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla
                           $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
                           $<$<BOOL:${CPL_WERROR}>:-Werror>)
endif()
if(CPL_SANITIZE)
    set(sanitize -fsanitize=${CPL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(cpl_flags INTERFACE ${sanitize})
    target_link_options(cpl_flags INTERFACE ${sanitize})
endif()
