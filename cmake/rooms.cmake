# The house: every room's folder, what it is about, and which rooms it may include. The libraries are
# made from this table (cmake/house.cmake), and the test `rooms` holds every #include against it
# (tests/check_rooms.cmake). A room may only name rooms above it, so there are no circles between
# rooms; within a room the test finds them. Sources need no list: a room has what lies in its folder.
#
#   attnscope_room(FOLDER "What it is about."
#     MAY rooms, or whole floors (core: all rooms below core/)
#     USES third parties of the list below; rooms that use none have the standard library alone
#     [LIBRARY name]       rooms of one name are one library; core's are `core`, else the folder's name
#     [IF variable]        the room's library is made where this is true
#     [TARGET_ELSEWHERE])  its folder's CMakeLists.txt says what becomes of it
#
# Names of third parties, and the headers that they are known by:
attnscope_third_party(posix HEADERS "^((sys|netinet|arpa)/[a-z]+|dirent|fcntl|unistd|poll|sched|spawn|pthread|pwd|malloc|time|linux/[a-z0-9]+)\\.h$")
attnscope_third_party(fmt TARGETS fmt::fmt HEADERS "^fmt/")
attnscope_third_party(json TARGETS nlohmann_json::nlohmann_json HEADERS "^nlohmann/")
attnscope_third_party(xxhash TARGETS PkgConfig::xxhash HEADERS "^xxh")
attnscope_third_party(hdf5 TARGETS attnscope_hdf5 HEADERS "^hdf5(_hl)?\\.h$")
attnscope_third_party(zlib TARGETS ZLIB::ZLIB HEADERS "^zlib\\.h$")
attnscope_third_party(png TARGETS PNG::PNG HEADERS "^png\\.h$")
attnscope_third_party(gif TARGETS GIF::GIF HEADERS "^gif_lib\\.h$")
attnscope_third_party(stb TARGETS attnscope_stb HEADERS "^stb_truetype\\.h$")
attnscope_third_party(highway TARGETS PkgConfig::hwy HEADERS "^(hwy/.*|(xmmintrin|cpuid)\\.h)$")
attnscope_third_party(loader TARGETS ${CMAKE_DL_LIBS} HEADERS "^dlfcn\\.h$")
attnscope_third_party(mpi HEADERS "^mpi\\.h$")
attnscope_third_party(cuda HEADERS "^(cuda_runtime(_api)?|cuda_gl_interop|cublas_v2|cute/.*|device_intrinsics|gl_interop|tensor_core|warpgroup)\\.h")
attnscope_third_party(cute HEADERS "^cute/")
attnscope_third_party(opengl TARGETS PkgConfig::epoxy HEADERS "^(epoxy|GLES3)/")
attnscope_third_party(emscripten HEADERS "^emscripten/")
attnscope_third_party(imgui TARGETS attnscope_imgui HEADERS "^(imgui.*\\.h|GLFW/.*)$")
attnscope_third_party(nanobind HEADERS "^nanobind/")
attnscope_third_party(beast TARGETS attnscope_boost HEADERS "^boost/")
attnscope_third_party(boost TARGETS attnscope_boost HEADERS "^boost/(archive/iterators|math)/")
attnscope_third_party(cli11 TARGETS CLI11::CLI11 HEADERS "^CLI/")

# core: the problem and the stream. The standard library alone.
attnscope_room(core/base "Words everybody uses: errors, checked sizes, dtypes, ranges, lists, the memory budget.")
attnscope_room(core/tensor "A tensor behind a seam: read a box of it, view it as [B, H, N, d]."
  MAY core/base)
attnscope_room(core/mask "Masks as data: the Mask value and its basic terms."
  MAY core/base core/tensor)
attnscope_room(core/problem "One attention call: shapes, token grid, score function, RoPE, identity."
  MAY core/base core/tensor core/mask)
attnscope_room(core/reference "The oracle in double, and heads with a known character."
  MAY core/base core/tensor core/mask core/problem)
attnscope_room(core/stream "How tiles flow: plan, seam of the backends, seam of the sinks, engine."
  MAY core/base core/tensor core/mask core/problem)
attnscope_room(core/maps "A head's map as rows, computed or read."
  MAY core/base core/problem core/stream)
attnscope_room(core/reduce "What row panels add up to, exactly and in any order, and a head's metrics."
  MAY core/base core/tensor core/mask core/problem core/stream)
attnscope_room(core/patterns "The mask lab: named sparse patterns, and what they keep."
  MAY core/base core/tensor core/mask core/problem core/stream)
attnscope_room(core/heads "What is kept of one head: its record of numbers and arrays, its sketch."
  MAY core/base core/tensor core/mask core/problem core/stream core/reduce)
attnscope_room(core/products/tokens "Which tokens are meant: by words of the prompt, boxes, parts of a sequence; what a cache had dropped."
  MAY core/base core/mask core/problem)
attnscope_room(core/products "What is asked of a map, as values without files: rows, columns, pooled maps, volumes."
  MAY core/base core/mask core/problem core/stream core/reduce)
attnscope_room(core/products/differences "How two maps differ: entry by entry, row by row, in blocks."
  MAY core/base core/mask core/problem core/stream core/maps core/products/tokens core/products)
attnscope_room(core/products/rollout "Attention followed through the layers."
  MAY core/base core/stream core/products/tokens)

# modules: what is loaded at run time.
attnscope_room(modules "Files of the program's own that are loaded only when they are wanted: found, opened, asked."
  MAY core/base USES loader)

# cluster: several processes that do one run.
attnscope_room(cluster/mpi "What the program and the MPI module know of each other, and the module, which alone knows MPI."
  MAY core/base USES mpi TARGET_ELSEWHERE)
attnscope_room(cluster "What started this process, and the team that it is one of: words to all, the next unit, one end."
  MAY core/base modules cluster/mpi USES posix)

# kernels: how a tile is computed.
attnscope_room(kernels/common "What all backends share on the host."
  MAY core USES highway posix LIBRARY kernels)
attnscope_room(kernels/reference "Plain loops in double: the definition."
  MAY core kernels/common LIBRARY kernels)
attnscope_room(kernels/cpu/simd "Micro-kernels, epilogues, reductions; *-inl.h is compiled once an instruction set, one of which is chosen."
  MAY core kernels/common USES highway posix LIBRARY kernels)
attnscope_room(kernels/cpu/packing "Q and K as the micro-kernels want them."
  MAY core kernels/common kernels/cpu/simd LIBRARY kernels)
attnscope_room(kernels/cpu/keys "What row groups meet of a head: its packed key blocks, streamed ones, keys as they are stored."
  MAY core kernels/common kernels/cpu/simd kernels/cpu/packing USES posix LIBRARY kernels)
attnscope_room(kernels/cpu "The SIMD backend: heads, whose row groups walk over key blocks."
  MAY core kernels/common kernels/cpu/simd kernels/cpu/packing kernels/cpu/keys USES posix LIBRARY kernels)
attnscope_room(kernels/cuda "What the program and the CUDA module know of each other."
  MAY core/base core/tensor core/stream TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/kernel/nvcc "What nvcc alone compiles; the tests' emulation has headers of the same names."
  USES cuda TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/kernel "What runs on a device: kernels, and the arguments that they take."
  MAY core/stream USES cuda TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/host/devices "Devices: their memory, queues and events, cuBLAS, which kernels they run."
  MAY core/base core/tensor core/stream kernels/cuda kernels/cuda/kernel USES cuda loader TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/host/profile "What launches take, and the work that they do."
  MAY core kernels/cuda/kernel kernels/cuda/host/devices USES cuda TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/host/tensors "How rows of Q and K come to a device, and how they lie there."
  MAY core kernels/common kernels/cuda/kernel kernels/cuda/host/devices kernels/cuda/host/profile USES cuda TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/host/plans "What is decided before a launch: tiles of the mask, blocks of keys."
  MAY core kernels/cuda/kernel kernels/cuda/host/profile TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/host/textures "Texels that stay on a device, and their way to the textures of a window."
  MAY core kernels/cuda/host/devices USES cuda TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/host/trust "Small maps that a device computes before it is believed."
  MAY core kernels/cuda/kernel kernels/cuda/host/devices TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/host/head "One head on a device: lanes, and its calls in steps of rows and keys."
  MAY core kernels/common kernels/cuda kernels/cuda/kernel kernels/cuda/host/devices kernels/cuda/host/profile kernels/cuda/host/tensors
      kernels/cuda/host/plans kernels/cuda/host/textures kernels/cuda/host/trust
  USES cuda TARGET_ELSEWHERE)
attnscope_room(kernels/cuda/host "The backend over all devices, and the module's entry points."
  MAY core kernels/cuda kernels/cuda/kernel kernels/cuda/host/devices kernels/cuda/host/tensors kernels/cuda/host/textures
      kernels/cuda/host/trust kernels/cuda/host/head
  USES cuda TARGET_ELSEWHERE)
attnscope_room(kernels "Makes a backend, and loads the CUDA module."
  MAY core modules kernels/common kernels/reference kernels/cpu kernels/cuda LIBRARY kernels)

# io: files in and out.
attnscope_room(io/files "Bytes on disk, safely: pread, locks, staged outputs, JSON that nobody vouches for, base64."
  MAY core USES posix fmt json xxhash boost)
attnscope_room(io/segments "Token maps and names of heads as JSON: what captures state and exports keep."
  MAY core io/files USES fmt json LIBRARY io_files)
attnscope_room(io/helper "The process that reads what may crash or hang who reads it: starting it, asking it, answering in it."
  MAY core/base io/files USES posix fmt json LIBRARY io_files)
attnscope_room(io/hdf5 "The HDF5 library's handles, reading and writing; nothing of ours."
  MAY core io/files USES fmt hdf5 LIBRARY io_tensors)
attnscope_room(io/tensors "Containers of tensors in: safetensors, npy and npz, torch, HDF5; safetensors out."
  MAY core io/files io/helper io/hdf5 USES posix fmt json hdf5 zlib)
attnscope_room(io/capture/facts "What files and options say of a call, before any tensor is looked at: facts, presets, the catalogue."
  MAY core io/files io/tensors USES posix fmt json LIBRARY io_capture)
attnscope_room(io/capture/call "One call, from its facts and tensors, in named stages; what is guessed, and what is refused."
  MAY core io/files io/segments io/tensors io/capture/facts USES posix fmt json LIBRARY io_capture)
attnscope_room(io/capture "Files to calls: folders, names, the capture that is opened; copying, hashing."
  MAY core io/files io/segments io/tensors io/capture/facts io/capture/call USES posix fmt json xxhash LIBRARY io_capture)
attnscope_room(io/rank_parts "Captures of several processes to the one that a single process would have made."
  MAY core io/files io/tensors io/capture/facts io/capture/call io/capture USES fmt json LIBRARY io_capture)
attnscope_room(io/relabel "Labels of a capture's calls told afterwards, in its files; a journal of it."
  MAY core io/files io/capture/facts io/capture/call io/capture USES posix fmt json LIBRARY io_capture)
attnscope_room(io/stream_chunks "Chunks of a stream, whose keys a cache keeps, joined to one call."
  MAY core io/files io/segments io/capture/facts io/capture/call io/capture USES fmt json LIBRARY io_capture)
attnscope_room(io/masks "Masks as they are asked for: patterns, files of blocks and trees of both, and files of blocks out."
  MAY core io/files io/segments io/tensors USES fmt json LIBRARY io_capture)
attnscope_room(io/lab "Which edit of attention each head gets: chosen from numbers, as files, as configurations of kernels."
  MAY core io/files USES fmt json LIBRARY io_capture)
attnscope_room(io/check "Does a capture agree with its own outputs, and what is the likely mistake."
  MAY core io/files io/tensors io/capture USES fmt LIBRARY io_capture)
attnscope_room(io/export/format "What an export file is: spec, layout, manifest, journal, checksums."
  MAY core io/files io/segments io/helper io/hdf5 io/tensors io/capture USES posix fmt json xxhash hdf5 LIBRARY io_export)
attnscope_room(io/export/write "Sinks that write it."
  MAY core io/files io/segments io/hdf5 io/capture io/export/format USES posix fmt json xxhash hdf5 zlib LIBRARY io_export)
attnscope_room(io/export/read "What reads it back: maps, blocks, shards, stats, verification."
  MAY core io/files io/segments io/helper io/hdf5 io/tensors io/export/format USES posix fmt json hdf5 LIBRARY io_export)
attnscope_room(io/pictures/text "Words to pixels: font files, the embedded font, the system's, ink."
  MAY core io/files USES posix fmt stb LIBRARY io_pictures)
attnscope_room(io/pictures "Numbers to pixels: colour maps and scales, canvas, matrix, mosaic, tables, PNG. No HDF5."
  MAY core io/files io/pictures/text USES posix fmt png zlib LIBRARY io_pictures)
attnscope_room(io/pictures/film "A row's volume as frames: strips, frames over the video, files that move."
  MAY core io/files io/pictures/text io/pictures USES posix fmt gif LIBRARY io_pictures)
attnscope_room(io/pictures/chart "Numbers over numbers: lines, dots and bars in a frame, its axes, a legend beside the data."
  MAY core io/files io/pictures/text io/pictures LIBRARY io_pictures)
attnscope_room(io/results "Products to files: volumes, films, numbers of heads."
  MAY core io/files io/segments io/hdf5 io/tensors io/export/format io/export/write io/pictures io/pictures/film USES fmt json hdf5)

attnscope_room(io/metrics "Numbers of heads, of a capture or of several runs of a model: tables, the journal of a run, files, the whole of several, and what tells tables apart."
  MAY core io/files io/segments io/helper io/hdf5 io/capture/facts io/capture/call io/capture io/export/format io/export/write io/export/read io/results
  USES fmt json hdf5 boost LIBRARY io_results)
attnscope_room(io/plan_parts "Parts of one plan, that several runs made: which there are, and the whole of them."
  MAY core io/files io/segments io/helper io/hdf5 io/tensors io/capture/facts io/capture/call io/capture io/export/format io/export/write io/export/read
      io/results io/metrics
  USES posix fmt json hdf5 LIBRARY io_results)
attnscope_room(io/helper/questions "All that the helper process can be asked."
  MAY io/helper io/tensors io/export/format io/export/read io/plan_parts io/metrics LIBRARY io_results)

# viewer: the window.
attnscope_room(viewer/view/looks "How things are shown, as values: a film, a volume, words, the time line."
  MAY core io/pictures io/pictures/film USES fmt LIBRARY viewer_view)
attnscope_room(viewer/view/maps "What there is to be looked at, as values: sources of maps, tiles, lines, masks and tracks, and who brings them."
  MAY core io/files io/capture io/pictures viewer/view/looks USES fmt LIBRARY viewer_view)
attnscope_room(viewer/view/heads "Heads among all heads: the atlas, its filter, the picker, the time line."
  MAY core viewer/view/looks viewer/view/maps USES fmt LIBRARY viewer_view)
attnscope_room(viewer/view "What is looked at and what can be done to it: state, actions, undo. No threads."
  MAY core io/pictures viewer/view/looks viewer/view/maps viewer/view/heads USES fmt LIBRARY viewer_view)
attnscope_room(viewer/view/row "What is made of a query's row before it is drawn: films, words, a volume's camera."
  MAY core viewer/view/looks viewer/view/maps viewer/view USES fmt LIBRARY viewer_view)
attnscope_room(viewer/settings "Every setting of the window, once: its words, its lines, what print tells of it."
  MAY core io/pictures viewer/view/looks viewer/view/maps viewer/view/heads viewer/view viewer/view/row USES fmt LIBRARY viewer_view)
attnscope_room(viewer/commands "All that can be done, by name and by key."
  MAY core viewer/view/heads viewer/view viewer/settings USES fmt LIBRARY viewer_view)
attnscope_room(viewer/session "The window's state in files and on a command line; files that were open."
  MAY core io/files io/tensors io/capture/facts io/capture viewer/view/maps viewer/view/heads viewer/view viewer/settings
  USES fmt json LIBRARY viewer_view)
attnscope_room(viewer/tiles/texels "Pooled entries: made of rows, sampled, read from exports."
  MAY core io/files io/export/format io/export/read viewer/view/maps USES posix fmt LIBRARY viewer_tiles)
attnscope_room(viewer/tiles/jobs "What one piece of work computes: a tile, a line, a pass, a sketch; what a head's work leaves."
  MAY core viewer/view/maps viewer/tiles/texels USES posix fmt LIBRARY viewer_tiles)
attnscope_room(viewer/tiles "Tiles and lines brought in the background, computed or read: who works when, and on what."
  MAY core kernels io/files io/capture io/check io/masks io/export/format io/export/read io/pictures viewer/view/maps
      viewer/tiles/texels viewer/tiles/jobs
  USES posix fmt LIBRARY viewer_tiles)
attnscope_room(viewer/remote "Maps at the other end of a line: the messages, who serves tiles, who shows them, the way there."
  MAY core io/pictures viewer/view/maps USES posix fmt zlib)
attnscope_room(viewer/remote/web/assets "The page's files, as part of the program." TARGET_ELSEWHERE)
attnscope_room(viewer/remote/web "Windows in browsers: who may come in, the page, messages by WebSocket. Alone knows Boost.Beast."
  MAY core/base viewer/remote/web/assets viewer/remote USES posix fmt beast)
attnscope_room(viewer/script "The window without hands: words and what runs them."
  MAY core io/files viewer/view/maps viewer/view/heads viewer/view viewer/settings viewer/commands USES fmt json)
attnscope_room(viewer/gl "OpenGL objects; they know nothing of what is drawn with them."
  MAY core io/pictures USES fmt opengl IF ATTNSCOPE_VIEWER)
attnscope_room(viewer/textures "Tiles on the GPU: by which way they come there, which stay."
  MAY core io/pictures viewer/view/maps viewer/view viewer/gl IF ATTNSCOPE_VIEWER)
attnscope_room(viewer/panels "What panels are made of, and those that stand by themselves: draw a const Scene, return requests."
  MAY core io/pictures io/pictures/text viewer/view/maps viewer/view/heads viewer/view viewer/view/row viewer/settings viewer/commands viewer/gl
      viewer/textures
  USES fmt imgui opengl LIBRARY viewer_panels IF ATTNSCOPE_VIEWER)
attnscope_room(viewer/panels/map "The matrix: tiles, rulers, crosshair, numbers in cells, a mask over it."
  MAY core io/pictures viewer/view/maps viewer/view viewer/gl viewer/textures viewer/panels
  USES fmt imgui opengl LIBRARY viewer_panels IF ATTNSCOPE_VIEWER)
attnscope_room(viewer/panels/row "The picked query's row: film, volume, words."
  MAY core io/pictures io/pictures/film viewer/view/maps viewer/view viewer/view/row viewer/gl viewer/textures viewer/panels
  USES fmt imgui opengl LIBRARY viewer_panels IF ATTNSCOPE_VIEWER)
attnscope_room(viewer/panels/dialogs "What stands before the panels: files, errors, help, the palette, the empty window."
  MAY core viewer/session viewer/commands viewer/panels USES fmt imgui LIBRARY viewer_panels IF ATTNSCOPE_VIEWER)
attnscope_room(viewer/screen "Where the window is: on a display or on none, and the mouse and keys that come from there."
  MAY core/base viewer/view viewer/commands viewer/gl viewer/panels
  USES posix fmt imgui opengl LIBRARY viewer_app IF ATTNSCOPE_VIEWER)
attnscope_room(viewer/app "The window: its frame loop, the document, what scripts and hands do to them."
  MAY core io/files io/tensors io/capture/call io/capture io/masks io/export/format io/pictures io/pictures/film
      io/results viewer/view/maps viewer/view/heads viewer/view viewer/view/row viewer/settings viewer/commands viewer/session viewer/tiles/texels
      viewer/tiles/jobs viewer/tiles viewer/remote viewer/script viewer/gl viewer/panels viewer/panels/map viewer/panels/row viewer/panels/dialogs
      viewer/screen
  USES posix fmt imgui opengl LIBRARY viewer_app IF ATTNSCOPE_VIEWER)

# web: what runs in a browser, made by emscripten (cmake/web.cmake, cmake/engine.cmake).
attnscope_room(web/engine "One head in a page: its rows, pooled entries and numbers, for whoever loads the module."
  MAY core kernels/cpu LIBRARY web_engine)
attnscope_room(web/figure "One head as a page in one file: its parts, how texts and bytes stand in it."
  MAY core/base io/files USES fmt json LIBRARY web_figure)
attnscope_room(web/figure/head "What of one head goes into a page: the part that is chosen, row sums, base, mask, first view, facts."
  MAY core io/files io/capture/facts io/capture/call io/capture io/pictures web/engine web/figure USES fmt json)
attnscope_room(web/report "All heads of a capture as a page in one file: its parts, and figures that open in it."
  MAY core/base io/files io/pictures web/figure USES json LIBRARY web_report)

attnscope_room(web/window "The window in a page: its canvas and input, its way to the server, what it has in place of files."
  MAY core io/capture io/files io/pictures io/pictures/film io/pictures/text io/tensors viewer/view/maps viewer/view viewer/commands viewer/session viewer/tiles
      viewer/remote viewer/script viewer/gl viewer/screen viewer/app
  USES fmt imgui emscripten TARGET_ELSEWHERE)

# cli: the command.
attnscope_room(cli/common "Parser, console, options and inputs that commands share."
  MAY core kernels io USES posix fmt json cli11 LIBRARY cli)
attnscope_room(cli/help "attnscope help and completion, manual pages." MAY core io cli/common USES fmt LIBRARY cli)
attnscope_room(cli/run "The run of a command over heads: backend, plan, share, team, records."
  MAY core cluster kernels kernels/common io cli/common USES posix fmt json LIBRARY cli)
attnscope_room(cli/info "attnscope info." MAY core io cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/export "attnscope export." MAY core cluster io cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/query "attnscope query." MAY core cluster io cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/render "attnscope render." MAY core io cli/common cli/run cli/query USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/stats "attnscope stats." MAY core cluster io cli/common cli/run USES posix fmt json cli11 LIBRARY cli)
attnscope_room(cli/plot "attnscope plot." MAY core io cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/mask "attnscope mask, and what it shares with attnscope lab." MAY core cluster io cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/lab "attnscope lab." MAY core cluster io cli/common cli/run cli/mask USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/diff "attnscope diff." MAY core io cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/rollout "attnscope rollout." MAY core cluster io cli/common cli/run cli/query USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/merge "attnscope merge." MAY core io cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/relabel "attnscope relabel." MAY core io cli/common USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/verify "attnscope verify." MAY core kernels io cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/figure "attnscope figure."
  MAY core io web/figure/head cli/common cli/run USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/report "attnscope report."
  MAY core kernels io web/figure web/figure/head web/report cli/common cli/run cli/info USES fmt json cli11 LIBRARY cli)
attnscope_room(cli/bench "attnscope bench." MAY core kernels/cpu io cli/common cli/run USES posix fmt json cli11 LIBRARY cli)
attnscope_room(cli/serve "attnscope serve, and captures as the tile sources that it and the window show."
  MAY core kernels io viewer/remote/web/assets viewer/view/maps viewer/view viewer/session viewer/tiles/texels viewer/tiles viewer/remote
      viewer/remote/web cli/common cli/run USES posix fmt cli11 LIBRARY cli)
attnscope_room(cli "main, and the commands of one file: convert, synth, view."
  MAY core kernels kernels/cpu io viewer cli/common cli/help cli/run cli/info cli/export cli/query cli/render cli/stats cli/plot cli/mask cli/lab cli/diff cli/rollout
      cli/merge cli/relabel cli/verify cli/figure cli/report cli/bench cli/serve
  USES posix loader fmt json cli11)

# python: the command's words and the libraries, as a module of Python. The package itself is python/attnscope.
attnscope_room(python/native "attnscope._native: arrays in and out, captures, parts of maps, numbers of heads."
  MAY core kernels io web/figure/head cli/common cli/run cli/query cli/stats USES fmt nanobind IF ATTNSCOPE_PYTHON_MODULE TARGET_ELSEWHERE)
