const turn = document.getElementById("turn");
const play = document.getElementById("play");
const film = document.querySelector(".film");
const still = document.querySelector(".still");

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target !== play) turn.click();
});

const bytes = Uint8Array.from(atob(film.src.split(",")[1]), (sign) => sign.charCodeAt(0));
const rows = new Blob([bytes], { type: "image/webp" });
play.hidden = matchMedia("(prefers-reduced-motion: reduce)").matches;
play.addEventListener("click", () => {
  turn.checked = false;
  URL.revokeObjectURL(film.src);
  film.src = URL.createObjectURL(rows); // a picture at a new address plays from its start
  for (const animation of still.getAnimations()) {
    animation.currentTime = 0;
    animation.play();
  }
});
