# Optional libraries. Each is known to one .c file, which asks CPL_HAVE_<NAME>; without the library its
# functions say what is missing. Sets
#   cpl_libraries   an interface target with the definitions and include folders, for the library's objects
#   CPL_LINK        what the finished libraries link
#   CPL_PC_PRIVATE  the same as -l flags, for couplet.pc
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(cpl_libraries INTERFACE)
set(CPL_LINK Threads::Threads m)
set(CPL_PC_PRIVATE "-lm -pthread")
set(cpl_summary)

# cpl_find(NAME header library [folder [name...]]): adds the library where both are found, the header also in this
# folder below the usual ones, the library also under these names. -DCPL_WITHOUT_<NAME>=ON leaves it out.
function(cpl_find name header library)
    option(CPL_WITHOUT_${name} "build without ${library}" OFF)
    set(others ${ARGN})
    list(POP_FRONT others suffix)
    find_path(CPL_${name}_INCLUDE ${header} PATH_SUFFIXES ${suffix})
    find_library(CPL_${name}_LIBRARY NAMES ${others} ${library})
    mark_as_advanced(CPL_WITHOUT_${name} CPL_${name}_INCLUDE CPL_${name}_LIBRARY)
    if(CPL_WITHOUT_${name})
        set(state "left out")
    elseif(CPL_${name}_INCLUDE AND CPL_${name}_LIBRARY)
        set(state ${CPL_${name}_LIBRARY})
        foreach(other IN LISTS others)
            if(CPL_${name}_LIBRARY MATCHES "lib${other}\\.")
                set(library ${other})
            endif()
        endforeach()
        target_compile_definitions(cpl_libraries INTERFACE CPL_HAVE_${name})
        target_include_directories(cpl_libraries SYSTEM INTERFACE ${CPL_${name}_INCLUDE})
        # The installed package names the library alone: its place on this machine is nobody else's.
        set(CPL_LINK ${CPL_LINK} $<BUILD_INTERFACE:${CPL_${name}_LIBRARY}> $<INSTALL_INTERFACE:${library}>
            PARENT_SCOPE)
        set(CPL_PC_PRIVATE "-l${library} ${CPL_PC_PRIVATE}" PARENT_SCOPE)
    else()
        set(state missing)
    endif()
    set(cpl_summary ${cpl_summary} "${library}: ${state}" PARENT_SCOPE)
endfunction()

cpl_find(JANSSON jansson.h jansson)
cpl_find(UTF8PROC utf8proc.h utf8proc)
cpl_find(YAML yaml.h yaml)
cpl_find(ZLIB zlib.h z)
cpl_find(HDF5 hdf5.h hdf5 hdf5/serial hdf5_serial) # Debian has one of several beside the other

# SentencePiece is written in C++: its one file of ours needs a C++ compiler, and everything that links it C++'s own
# library. Without either the build goes on with C alone.
option(CPL_WITHOUT_SENTENCEPIECE "build without sentencepiece" OFF)
find_path(CPL_SENTENCEPIECE_INCLUDE sentencepiece_trainer.h)
find_library(CPL_SENTENCEPIECE_LIBRARY sentencepiece)
find_library(CPL_SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train)
mark_as_advanced(CPL_WITHOUT_SENTENCEPIECE CPL_SENTENCEPIECE_INCLUDE CPL_SENTENCEPIECE_LIBRARY
                 CPL_SENTENCEPIECE_TRAIN_LIBRARY)
set(CPL_HAVE_SENTENCEPIECE OFF)
if(CPL_WITHOUT_SENTENCEPIECE)
    list(APPEND cpl_summary "sentencepiece: left out")
elseif(NOT CPL_SENTENCEPIECE_INCLUDE OR NOT CPL_SENTENCEPIECE_LIBRARY OR NOT CPL_SENTENCEPIECE_TRAIN_LIBRARY)
    list(APPEND cpl_summary "sentencepiece: missing")
else()
    include(CheckLanguage)
    check_language(CXX)
    if(CMAKE_CXX_COMPILER)
        enable_language(CXX)
        set(CPL_HAVE_SENTENCEPIECE ON)
        target_compile_definitions(cpl_libraries INTERFACE CPL_HAVE_SENTENCEPIECE)
        target_include_directories(cpl_libraries SYSTEM INTERFACE ${CPL_SENTENCEPIECE_INCLUDE})
        set(cxx stdc++)
        if("c++" IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
            set(cxx c++)
        endif()
        list(APPEND CPL_LINK $<BUILD_INTERFACE:${CPL_SENTENCEPIECE_TRAIN_LIBRARY}>
             $<BUILD_INTERFACE:${CPL_SENTENCEPIECE_LIBRARY}> $<INSTALL_INTERFACE:sentencepiece_train>
             $<INSTALL_INTERFACE:sentencepiece> ${cxx})
        set(CPL_PC_PRIVATE "-lsentencepiece_train -lsentencepiece -l${cxx} ${CPL_PC_PRIVATE}")
        list(APPEND cpl_summary "sentencepiece: ${CPL_SENTENCEPIECE_LIBRARY}")
    else()
        list(APPEND cpl_summary "sentencepiece: no C++ compiler")
    endif()
endif()

message(STATUS "couplet ${PROJECT_VERSION}: ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}, "
               "${CMAKE_SYSTEM_PROCESSOR}, ${CMAKE_BUILD_TYPE} ${CPL_SANITIZE}")
foreach(line IN LISTS cpl_summary)
    message(STATUS "  ${line}")
endforeach()
