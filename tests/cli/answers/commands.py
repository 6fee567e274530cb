"""The command lines whose answers are held against the schemas, in the order in which they run."""

from typing import NamedTuple

# They show a window, serve one, or print words for people and shells.
WITHOUT_JSON = {"view", "serve", "help", "completion"}


class Case(NamedTuple):
    words: list
    codes: tuple = (0,)
    before: str = ""  # what is done to files first (inputs.py, damage.py)


def cases(text, codes=(0,), before=""):
    """A case a line."""
    lines = [line.split() for line in text.strip().splitlines()]
    return [Case(words, codes, before if i == 0 else "") for i, words in enumerate(lines)]


ONE = "--layers 0 --heads 0"

CAPTURES = cases(
    """
    synth --grid 4x4x4 --text 4@start --layers 2 --heads 2 --steps 2 --values -o tiny
    synth --grid 4x4x4 --text 4@start -o tiny.safetensors --dry-run
    relabel tiny --steps 0-1=10-11 --dry-run
    relabel tiny --steps 0-1=10-11
    convert tiny -o copy
    convert tiny --layers 0 --steps 10 -o layer.safetensors --dry-run
    convert tiny -o part-{shard} --shard 0/2
    convert tiny -o part-{shard} --shard 1/2
    merge part-0-of-2 part-1-of-2 -o joined
    merge part-0-of-2 part-1-of-2 -o dry --dry-run
    info dump
    info tiny --no-scan
    info dump --as step=3 --layers 1
    verify dump --layers 0,1
    verify tiny
    """
)
CAPTURES += cases("verify dump --layers 0 --scale 1\nverify tiny --strict", (3,))
CAPTURES += cases(
    """
    info --q q.npy --k k.npy
    info --q q.npy --k k.npy --grid 4x4x4
    stats --q q.npy --k k.npy
    query --q q.npy --k k.npy --index 3
    """,
    before="tensors",
)
CAPTURES += cases(
    """
    info segments.safetensors --ignore softcap
    verify segments.safetensors --ignore softcap
    stats segments.safetensors --ignore softcap
    mask segments.safetensors --ignore softcap --mask temporal
    query segments.safetensors --ignore softcap --query 1,2,2
    query segments.safetensors --ignore softcap --query ref:0,1,1 --segment ref
    export segments.safetensors --ignore softcap -o segments.h5
    info segments.h5
    diff segments.safetensors --ignore softcap --heads 0 --b-head 1
    render segments.safetensors --ignore softcap --picture mosaic -o segments.png
    """,
    before="segments",
)

CAPTURES += cases(
    """
    convert ranks --stitch -o whole --dry-run
    convert ranks --stitch -o whole
    convert ranks --stitch -o whole.safetensors
    info ranks/rank-0-of-2
    stats whole
    """,
    before="ranks",
)
CAPTURES += cases(
    """
    info stream
    stats stream
    mask stream --mask none --chunks 1
    query stream --index 3 --chunks 1
    diff stream --chunks 0 --b-chunk 1
    export stream -o stream.h5
    info stream.h5
    convert stream --stitch -o joined-stream --dry-run
    convert stream --stitch -o joined-stream
    """,
    before="stream",
)

EXPORTS = cases(
    f"""
    export dump {ONE} -o w.h5
    export dump {ONE} -o w.h5 --resume
    export dump {ONE} -o all.h5 --dry-run
    export dump --dry-run -o all-{{shard}}.h5 --shard 1/3
    export dump {ONE} --product logits -o logits.h5
    export dump {ONE} --product lse -o lse.h5
    export dump {ONE} --product output -o output.h5
    export dump {ONE} --query 3,5,5 -o rows.h5
    export dump {ONE} --topk 4 -o topk.h5
    export dump {ONE} --topk 4 -o topk2.h5 --dry-run
    export dump {ONE} --threshold 0.01 -o threshold.h5
    export dump {ONE} --threshold 0.01 -o threshold2.h5 --dry-run
    export dump {ONE} --block 64 --pyramid -o pooled.h5
    export dump {ONE} --block 64 -o pooled2.h5 --dry-run
    export dump {ONE} --block 64 -o pooled-{{shard}}.h5 --shard 1/2
    export dump {ONE} -o maps-{{shard}}.h5 --shard 1/2
    stats dump {ONE} -o stats-{{shard}}.json --shard 1/2
    query dump {ONE} --query 3,5,5 -o query-{{shard}}.h5 --shard 1/2
    export dump {ONE} --compress gzip -o compressed.h5
    export dump --layers 0,1 --heads 0 -o w-{{shard}}.h5 --shard 0/2
    export dump --layers 0,1 --heads 0 -o w-{{shard}}.h5 --shard 1/2
    merge w-0-of-2.h5 w-1-of-2.h5 -o master.h5
    merge w-0-of-2.h5 w-1-of-2.h5 -o copied.h5 --copy
    merge w-0-of-2.h5 w-1-of-2.h5 -o dry.h5 --dry-run
    info w.h5
    info w-0-of-2.h5
    info master.h5
    info compressed.h5
    info pooled.h5
    info topk.h5
    info threshold.h5
    info lse.h5
    info output.h5
    verify w.h5
    verify w-0-of-2.h5
    verify pooled.h5
    verify compressed.h5
    """
)

NUMBERS = cases(
    f"""
    stats dump --layers 0
    stats tiny --steps 10 --where entropy>0 --cache none
    stats dump {ONE} --sample 32 --band 2 --pick 0.0
    stats dump {ONE} --exact --with frame_frame,column_mass,diagonal_profile,offset_kernel
    stats dump {ONE} --with entropy_rows,max_weight_rows,max_key_rows,lse_rows
    stats dump --layers 0 -o stats.json
    stats dump --layers 0 -o stats.json --resume
    stats tiny --curve --nearest 2
    stats dump --layers 1 -o stats.h5
    stats dump --layers 0 --dry-run
    stats dump --layers 0 --where entropy>0 --dry-run --cache none
    stats tiny --curve -o numbers-{{shard}}.json --shard 0/2
    stats tiny --curve -o numbers-{{shard}}.json --shard 1/2
    merge numbers-0-of-2.json numbers-1-of-2.json -o numbers.json
    merge numbers-0-of-2.json numbers-1-of-2.json -o -
    info stats.h5
    mask dump {ONE} --mask spatial:frames=1 --mask topk:block=64,keep=0.2
    mask dump {ONE} --mask topk:block=64,keep=0.2 --save blocks.npy --time
    mask dump {ONE} --mask temporal --exact -o mask.json
    mask dump {ONE} --mask blocks.npy
    mask dump {ONE} --mask temporal --dry-run
    mask tiny --mask temporal -o kept-{{shard}}.json --shard 0/2
    mask tiny --mask temporal -o kept-{{shard}}.json --shard 1/2
    lab dump {ONE} --edit sol:tau=0.5/1 --edit vsa:keep=0.2,tile=1x4x4 --edit spatial
    lab dump {ONE} --edit block-oracle:keep=0.2,block=32 --edit dense --exact -o lab.json
    lab dump {ONE} --edit blocks.npy --dry-run
    lab dump {ONE} --among sla,topk --target recall>=0.5 -o plan.json
    lab dump {ONE} --plan plan.json --config sta=sta.json --config-fact steps=20
    lab tiny --edit sla:keep=0.1..0.5:3,rest=row -o edits-{{shard}}.json --shard 0/2
    lab tiny --edit sla:keep=0.1..0.5:3,rest=row -o edits-{{shard}}.json --shard 1/2
    merge kept-0-of-2.json kept-1-of-2.json -o kept.json
    merge kept-0-of-2.json kept-1-of-2.json -o -
    bench --head 256x32 --case row --repeats 1
    """
)

RUNS = cases(
    """
    merge a.part b.part -o runs.h5 --dry-run
    merge a.part b.part -o runs.h5
    merge a.part b.part -o runs.csv
    info a.part
    info runs.h5
    verify runs.h5
    diff runs.h5
    diff runs.h5 --classes
    diff runs.h5 runs.h5
    diff a.part runs.h5
    """,
    before="runs",
)

QUERIES = cases(
    f"""
    query dump --layers 0 --query 3,5,5 --track
    query dump {ONE} --query 3,5,5 -o volume.npy
    query dump {ONE} --query 3,5,5 -o volume.h5
    query dump --layers 0 --query 3,5:7,5 --mean heads
    query dump {ONE} --query 3,5,5 --reverse --domain video
    query dump {ONE} --text-token red
    query dump {ONE} --query 3,5,5 --dry-run
    query dump {ONE} --query 3,5,5 --weighting value
    query w.h5 --query 3,5,5
    query tiny --query 1,2,2 -o row-{{shard}}.h5 --shard 0/2
    query tiny --query 1,2,2 -o row-{{shard}}.h5 --shard 1/2
    merge row-0-of-2.h5 row-1-of-2.h5 -o row.h5
    rollout dump --query 3,5,5
    rollout dump --text-token 2 --reverse -o rollout.h5
    rollout dump --query 3,5,5 --dry-run
    """
)

DIFFERENCES = cases(
    f"""
    diff dump {ONE} --b-head 1 --sample 64
    diff dump {ONE} --b-head 1 -o pairs.json
    diff dump {ONE} --b-head 1 --dry-run
    diff dump {ONE} --b-head 1 --segments
    diff dump {ONE} --b-head 1 --product pooled -o blocks.h5
    diff dump {ONE} --b-head 1 --product frames
    diff dump {ONE} --b-head 1 --product volume -o volume.gif
    diff dump {ONE} --b-head 1 --product volume --query 3,5,5 -o volume-of.h5
    diff logits.h5 logits.h5
    diff w.h5 dump
    diff w.h5 copied.h5
    diff w.h5 w.h5 --product pooled -o pooled-pairs.h5
    diff stats.json
    diff stats.json --classes
    diff stats.json stats.json
    diff stats.json -o -
    """
)

PICTURES = cases(
    f"""
    render dump {ONE} --picture matrix -o matrix.png
    render dump --layers 0 --picture mosaic -o mosaic.png
    render dump {ONE} --picture frames -o frames.png
    render dump --layers 0 --picture frames -o frames-of-heads.png
    render dump --layers 0 --picture heatmap --metric entropy -o heatmap.png
    render dump {ONE} --picture filmstrip --query 3,5,5 -o film.png
    render dump {ONE} --picture filmstrip --query 3,5,5 -o film.gif
    render dump {ONE} --picture text -o text.png
    render dump {ONE} --picture offsets -o offsets.png
    render dump {ONE} --picture matrix -o dry.png --dry-run
    render dump {ONE} --picture filmstrip --query 3,5,5 -o dry.png --dry-run
    plot dump --layers 0,1 --what recall -o recall.png --data recall.csv
    plot dump --layers 0,1 --what entropy -o entropy.png
    plot dump --layers 0,1 --what classes -o classes.png
    plot dump {ONE} --what logits -o logits-plot.png
    plot dump {ONE} --what keys -o keys-plot.png
    plot dump {ONE} --what keys -o dry.png --dry-run
    render w.h5 --picture matrix -o stored.png
    render w.h5 --picture mosaic -o stored-mosaic.png
    render stats.h5 --picture heatmap --metric entropy -o stored-heatmap.png
    figure dump {ONE} --stride 8 -o figure.html
    figure dump {ONE} --stride 8 -o dry.html --dry-run
    report dump -o report.html
    report dump --layers 0 --sample 32 --max-size 300KB -o small.html
    report dump --layers 0 --budget-time 0s -o late.html
    report dump --layers 0 -o dry.html --dry-run
    report stats.json -o numbers.html
    report w.h5 -o of-export.html
    report dump dump --layers 0 --sample 32 -o of-two.html
    report pooled.h5 -o of-pooled.html
    report stats.h5 -o numbers-of-h5.html
    """
)

VERSION = cases("--version")

ERRORS = cases("stats dump --no-such-option\nstats dump --layers 99\nsynth", (2,))
ERRORS += cases(
    """
    info no-such-capture
    export dump --block 64 -o pooled.h5
    stats dump --memory 100KiB
    stats --q nan.npy --k k.npy
    """,
    (1,),
)
# check_answers.py hides devices.
ERRORS += cases("query dump --query 3,5,5 --backend cuda", (1,))
ERRORS += cases("verify damaged.h5", (3,), "damaged")
ERRORS += cases("verify half.h5", (3,), "half")
ERRORS += cases("info master.h5\nverify master.h5", (3,), "part lost")
ERRORS += cases("info compressed.h5\nverify compressed.h5", (3,), "shard lost")

# What two processes under mpirun print together, where there is one.
TOGETHER = cases(
    f"""
    export dump {ONE} -o together.h5 --dry-run
    export dump {ONE} -o together.h5
    export dump {ONE} -o together.h5 --resume
    export dump {ONE} -o together-blocks.h5 --block 64 --dry-run
    stats dump {ONE} --dry-run
    stats dump --layers 0 --where entropy>0 --dry-run --cache none
    mask dump {ONE} --mask temporal --dry-run
    query dump --layers 0 --query 3,5,5 -o together.npy --dry-run
    rollout dump --query 3,5,5 -o together-rollout.npy --dry-run
    """
)

CASES = CAPTURES + EXPORTS + NUMBERS + RUNS + QUERIES + DIFFERENCES + PICTURES + VERSION + ERRORS
