/**
 * The preview's texts in English and Chinese. Pure; `{name}` marks a value to fill in.
 */

const TABLE = {
  en: {
    group: "Live preview of the picture being decoded",
    idle: "The picture appears here, row by row, while it is drawn.",
    middle: "A run is in progress. It started before this page was opened.",
    picture: "{label}, picture {number} of {count}",
    pictureOf: "{drawn}. {label}, picture {number} of {count}",
    drawnHint: "What is drawn. The lighter words were added to yours.",
    pictures: "{numbers}: ",
    wordKinds: "Words for the prompt",
    nameAThing: "Choose a thing first",
    moreInputs: "Show advanced inputs",
    lessInputs: "Hide advanced inputs",
    touch: { things: "Things in the picture", scene: "The scene", other: "Any other words for it",
      draw: "Draw", close: "Close" },
    report: "Report for a bug",
    noEdit: "No Edit by Words is connected to the run of this picture.",
    addEdit: "Add Edit by Words and draw",
    copy: "Copy",
    copied: "Copied",
    showAll: "Show all",
    overlay: "Overlay",
    overlayHint: "Colour the cells by draft result: accepted, repaired or still draft",
    accepted: "accepted",
    repaired: "repaired",
    draft: "still draft",
    row: "row {row} of {rows}",
    prepares: "getting the card ready, once",
    rowAlone: "row {row}",
    passes: "pass {passes} of {planned}",
    passesOpen: "pass {passes}, at most {most}",
    passesAlone: "pass {passes}",
    arNeeds: "AR needs {passes}",
    speed: "{speed} tokens/s",
    left: "about {seconds} s left",
    leftLong: "about {minutes} min left",
    acceptance: "{share} of drafts accepted",
    comma: ", ",
    donePasses: "{passes} passes, AR needs {ar}",
    donePassesPlain: "{passes} passes",
    seconds: "{seconds} s",
    identicalShare: "{share} of the tokens are AR's",
    startedAloud: "{label}: started, {rows} rows",
    rowAloud: "{label}: row {row} of {rows}",
    doneAloud: "{label}: done in {seconds} seconds",
    interrupted: "stopped at row {row}",
    paused: "paused at row {row}",
    failed: "failed at row {row}",
    wrongVersion: "This preview reads protocol {mine}, but the server sends {theirs}. "
      + "Reload the page. If that does not help, update the SSD node pack.",
    wrongMessage: "The preview skipped a message that it could not read ({kind}: {field}).",
    guarantee: {
      identical: "exactly as the model draws it",
      "same distribution": "another picture, just as likely",
      approximate: "close to what the model draws", relaxed: "close to what the model draws",
    },
  },
  zh: {
    group: "正在解码的图像的实时预览",
    idle: "解码时，图像会在这里逐行出现。",
    middle: "有任务正在运行，在打开本页面之前就已开始。",
    picture: "{label}，第 {number} 张，共 {count} 张",
    pictureOf: "{drawn}。{label}，第 {number} 张，共 {count} 张",
    drawnHint: "实际用于绘制的文字；颜色较浅的词是补上的。",
    pictures: "{numbers}：",
    wordKinds: "提示词用词",
    nameAThing: "请先选择一个事物",
    moreInputs: "显示高级输入",
    lessInputs: "隐藏高级输入",
    touch: { things: "图像中的事物", scene: "场景", other: "换成任意词语", draw: "绘制", close: "关闭" },
    report: "故障报告",
    noEdit: "这张图像的“运行”还没有连接“用词编辑”节点。",
    addEdit: "添加“用词编辑”并绘制",
    copy: "复制",
    copied: "已复制",
    showAll: "显示全部",
    overlay: "叠加层",
    overlayHint: "按草稿的结果给单元格着色：已接受、已修正或仍是草稿",
    accepted: "已接受",
    repaired: "已修正",
    draft: "仍是草稿",
    row: "第 {row} 行，共 {rows} 行",
    prepares: "正在准备显卡，仅此一次",
    rowAlone: "第 {row} 行",
    passes: "第 {passes} 次前向，共 {planned} 次",
    passesOpen: "第 {passes} 次前向，最多 {most} 次",
    passesAlone: "第 {passes} 次前向",
    arNeeds: "AR 需要 {passes} 次",
    speed: "{speed} 词元/秒",
    left: "约剩 {seconds} 秒",
    leftLong: "约剩 {minutes} 分钟",
    acceptance: "草稿接受率 {share}",
    comma: "，",
    donePasses: "{passes} 次前向，AR 需要 {ar} 次",
    donePassesPlain: "{passes} 次前向",
    seconds: "{seconds} 秒",
    identicalShare: "{share} 的词元与 AR 相同",
    startedAloud: "{label}：开始，共 {rows} 行",
    rowAloud: "{label}：第 {row} 行，共 {rows} 行",
    doneAloud: "{label}：完成，用时 {seconds} 秒",
    interrupted: "在第 {row} 行停止",
    paused: "在第 {row} 行暂停",
    failed: "在第 {row} 行失败",
    wrongVersion: "此预览使用协议 {mine}，服务器发送的是 {theirs}：请刷新页面；若仍无效，请更新 SSD 节点包。",
    wrongMessage: "预览略过了一条无法读取的消息（{kind}：{field}）。",
    guarantee: {
      identical: "与模型原样一致", "same distribution": "另一张同样可能的图像",
      approximate: "与模型原样相近", relaxed: "与模型原样相近",
    },
  },
};

export const LANGUAGES = Object.keys(TABLE);

/** The texts of a host's language such as "zh-CN"; English if the table lacks it. */
export function stringsFor(language, table = TABLE) {
  return table[String(language ?? "").toLowerCase().split(/[-_]/)[0]] ?? table.en;
}

/** A size in decimal units, as shops and disks state it. */
export function sizeText(bytes) {
  const [unit, scale] = [["GB", 1e9], ["MB", 1e6], ["kB", 1000]].find(([, least]) => bytes >= least)
    ?? ["B", 1];
  return scale === 1 ? `${bytes} B` : `${(bytes / scale).toFixed(1)} ${unit}`;
}

/** "row {row}" with its values filled in. */
export function say(template, values = {}) {
  return template.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}
