/** Loads strips of pictures that the server stores in files. Pure: `fetchFile(url)` gets them. */

/** A message with its strips read from files; of kind "gone" if the files no longer exist. */
export async function withStrips(message, fetchFile) {
  if (!message.files) return message;
  const strips = await Promise.all(message.files.map((file) => base64Of(file, fetchFile)));
  return strips.includes(null) ? { ...message, kind: "gone" } : { ...message, strips };
}

async function base64Of(file, fetchFile) {
  const answer = await fetchFile(`/view?${new URLSearchParams(file)}`);
  if (!answer.ok) return null;
  const bytes = new Uint8Array(await answer.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
