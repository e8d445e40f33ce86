#!/bin/bash
# Train `postcard` on the painter's world, from the bundled weights, through every stage.
#
#     nohup nice -n 19 lab/train/world.sh >> ~/.cache/ssd-world/world.log 2>&1 &
#
# Run it again after any interruption: finished stages are skipped, the one under way goes on from
# its last checkpoint (at most two minutes are lost). To stop it: kill -- -PID of this script. To end
# early, run it again with fewer STEPS: the rate then falls to zero within what is left.
#
# SSD_WORLD: folder of pictures, checkpoints and weights. PICTURES, READING, STEPS: of the backbone;
# each may change between two runs. DECODER_STEPS: of the tokenizer; `blend` learns the decoder
# anew. LOOK: how often the backbone stops for a sheet of pictures (see sheet.py).
set -euo pipefail
{  # read whole before it runs, so that it may be edited meanwhile
cd "$(dirname "$0")/../.."
out=${SSD_WORLD:-$HOME/.cache/ssd-world}
python=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
mkdir -p "$out"

train() { "$python" -m ssd_core train "$@"; }

# stage NAME COMMAND...: run a stage once.
stage() {
    local name=$1
    shift
    [ -e "$out/$name.done" ] && return
    echo "$(date -Is) $name"
    "$@"
    touch "$out/$name.done"
}

backbone() {
    local code
    until [ -e "$out/backbone.safetensors" ]; do
        code=0
        # A background job ignores SIGINT unless told otherwise, and then never checkpoints.
        env --default-signal=INT timeout --foreground --signal=INT "${LOOK:-2h}" "$python" -m ssd_core \
            train backbone --out "$out" --start-from postcard --shapes 0.4 --pictures "${PICTURES:-16000}" \
            --reading-steps "${READING:-2000}" --steps "${STEPS:-30000}" --rate 1.5e-3 \
            --cooldown 0.5 --thing-weight 2.5 --busy 2 || code=$?
        [ "$code" = 0 ] || [ "$code" = 124 ] || [ "$code" = 130 ] || exit "$code"
        [ -e "$out/backbone.ckpt" ] && "$python" -m ssd_lab.train.sheet "$out" postcard
    done
}

stage tokenizer train tokenizer --out "$out" --channels 176 --shapes --crop 192 --batch 8 \
    --slopes 1 --pictures 2400 --steps "${DECODER_STEPS:-3000}"
stage backbone backbone
stage blend train blend --out "$out" --steps 6000
stage upsample train upsample --out "$out" --steps 5000
stage self-distill train self-distill --out "$out" --pictures 1024
stage heads train heads --out "$out" --start-from postcard
stage row train heads --out "$out" --start-from postcard --kind row --batch 8 --epochs 2
stage small train backbone --out "$out/small" --start-from ssd_core/assets/postcard/small \
    --tokenizer "$out" --pictures 6000 --reading-steps 0 --steps 2000 --batch 16 --rate 1e-3 \
    --cooldown 0.6
stage samplers train mulo --out "$out" --drafter "$out/small" --steps 600 --batch 4 --width 72
stage classifier train classifier --out "$out" --steps 400 --pictures 800 --reference 1000
echo "$(date -Is) all stages are done: $out"
exit
}
