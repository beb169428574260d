// A sample of what a player reports: first picture, stalls behind it, decode errors, dropped frames. Absolute values of one play.
"use strict";
(() => {
  const video = document.getElementById("video");
  const play = crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("-");
  const said = { play, first_frame_ms: -1, played_ms: 0, stalls: 0, stalled_ms: 0, decode_errors: 0, dropped_frames: 0, player: "longtake-sample" };
  let wished = 0;
  let waiting = 0;
  let sent = "";

  function begin() {
    wished ||= performance.now();
  }

  function resume() {
    if (waiting) said.stalled_ms += Math.round(performance.now() - waiting);
    waiting = 0;
  }

  function first() {
    if (said.first_frame_ms < 0) said.first_frame_ms = Math.round(performance.now() - wished);
    tell();
  }

  function tell() {
    if (!wished) return;
    const played = video.played;
    let seconds = 0;
    for (let i = 0; i < played.length; i++) seconds += played.end(i) - played.start(i);
    said.played_ms = Math.round(seconds * 1000);
    said.dropped_frames = video.getVideoPlaybackQuality?.().droppedVideoFrames ?? 0;
    const text = JSON.stringify(said);
    if (text === sent) return;
    sent = text;
    document.getElementById("said").textContent = text;
    fetch(video.dataset.report, { method: "POST", body: text, keepalive: true, headers: { "Content-Type": "application/json" } });
  }

  video.addEventListener("play", begin);
  video.addEventListener("playing", () => { resume(); if (!video.requestVideoFrameCallback) first(); });
  video.requestVideoFrameCallback?.(first);
  video.addEventListener("waiting", () => {
    // Waiting for a place that was sought is no stall.
    if (said.first_frame_ms < 0 || video.seeking || waiting) return;
    said.stalls += 1;
    waiting = performance.now();
  });
  video.addEventListener("error", () => {
    // 3 is MEDIA_ERR_DECODE, 4 MEDIA_ERR_SRC_NOT_SUPPORTED: the network's are no fault of the file.
    if (video.error && video.error.code >= 3) said.decode_errors += 1;
    begin();
    tell();
  });
  video.addEventListener("ended", tell);
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") tell(); });
  setInterval(() => { if (!video.paused) tell(); }, 10000);
})();
