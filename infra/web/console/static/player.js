// The chart over the player: a click seeks, the line follows the picture; `,` and `.` step by a frame. While the job still runs
// the player has what passed so far (hls.js), and the chart grows with it.
"use strict";
(() => {
  const section = document.getElementById("player");
  const video = section.querySelector("video");
  const field = document.getElementById("frame");
  const fps = Number(section.dataset.fps);
  const frames = Number(section.dataset.frames);
  const playlist = section.dataset.playlist;
  const starts = section.dataset.starts.split(",").filter(Boolean).map(Number);
  const MORE_MS = 2000;
  const plots = [];
  let asked = 0;
  let shown = 0;

  if (playlist && Hls.isSupported()) {
    const player = new Hls({ startPosition: 0, enableWorker: false });
    player.loadSource(playlist);
    player.attachMedia(video);
  } else if (playlist) {
    video.src = playlist;  // Safari plays HLS by itself
  }

  const frameAt = (time) => Math.min(frames - 1, Math.max(0, Math.floor(time * fps + 0.001)));

  function show(frame) {
    shown = Math.min(frames - 1, Math.max(0, frame));
    video.pause();
    video.currentTime = (shown + 0.5) / fps;
    follow();
  }

  function follow() {
    if (document.activeElement !== field) field.value = shown;
    for (const plot of plots) plot.setCursor({ left: plot.valToPos(shown, "x"), top: 0 }, false);
  }

  function played(_, meta) {
    if (!video.seeking) {  // what comes while it seeks is still the picture of before
      shown = frameAt(meta.mediaTime);
      follow();
    }
    video.requestVideoFrameCallback(played);
  }
  video.requestVideoFrameCallback?.(played);
  video.addEventListener("seeked", () => { shown = frameAt(video.currentTime); follow(); });

  document.getElementById("back").onclick = () => show(shown - 1);
  document.getElementById("ahead").onclick = () => show(shown + 1);
  field.onchange = () => show(Number(field.value));
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === ",") show(shown - 1);
    if (event.key === ".") show(shown + 1);
  });

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function seams(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour("seam");
    for (const start of starts) {
      const x = Math.round(plot.valToPos(start, "x", true)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  function plot(place, series, axes, scales, data) {
    const look = { stroke: () => colour("dim"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false } };
    const size = () => ({ width: place.clientWidth, height: place.matches(".low") ? 110 : 190 });
    const made = new uPlot({
      ...size(),
      scales: { x: { time: false }, ...scales },
      series: [{ label: "Frame" }, ...series.map((s) => ({ width: 1.5, points: { show: false }, ...s }))],
      axes: [{ ...look, size: 28 }, ...axes.map((a) => ({ ...look, size: 46, ...a }))],
      cursor: { drag: { x: false, y: false }, y: false },
      hooks: { drawClear: [seams] },
    }, data, place);
    made.over.addEventListener("click", (event) => {
      const x = event.clientX - made.over.getBoundingClientRect().left;
      show(Math.round(made.posToVal(x, "x")));
    });
    made.over.addEventListener("mouseleave", follow);
    new ResizeObserver(() => made.setSize(size())).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => made.redraw());
    plots.push(made);
  }

  async function chart() {
    asked = performance.now();
    const answer = await fetch(section.dataset.chart);
    if (!answer.ok) throw new Error((await answer.json()).detail);
    const { frame, vmaf, psnr_y, kbit } = await answer.json();
    if (plots.length) {
      plots[0].setData([frame, vmaf, psnr_y]);
      plots[1].setData([frame, kbit]);
      return follow();
    }
    plot(document.getElementById("quality"),
      [{ label: "VMAF", scale: "vmaf", stroke: () => colour("vmaf") }, { label: "PSNR-Y, dB", scale: "psnr", stroke: () => colour("psnr") }],
      [{ scale: "vmaf" }, { scale: "psnr", side: 1, grid: { show: false } }], {}, [frame, vmaf, psnr_y]);
    plot(document.getElementById("bits"),
      [{ label: "kbit", scale: "y", stroke: () => colour("bits"), paths: uPlot.paths.bars({ size: [0.8] }) }],
      [{ scale: "y" }, { scale: "y", side: 1, show: true, values: () => [] , grid: { show: false } }],
      { y: { range: (_, __, max) => [0, max || 1] } }, [frame, kbit]);
    follow();
  }
  const said = document.getElementById("chart-problem");
  const draw = () => chart().then(() => { said.textContent = ""; }, (error) => { said.textContent = `No chart: ${error.message}`; });
  draw();
  if (playlist) document.addEventListener("refreshed", () => { if (performance.now() - asked > MORE_MS) draw(); });
})();
